package dev.penstock.schedules.simulate;

/** The credits of one channel, with the times at which they came back. */
final class Credits {
    /** The send must wait. */
    static final long NOT_YET = -1;

    private final int capacity;

    /** When receive i ended stands at i mod capacity: later sends ask for no older one. */
    private final long[] returnedAt;

    private int sent;
    private int received;
    private boolean senderWaits;

    /**
     * @param most tensors that the channel carries in a step; a larger capacity is never exhausted
     */
    Credits(int capacity, int most) {
        this.capacity = capacity;
        this.returnedAt = new long[capacity < most ? capacity : 0];
    }

    /** When the next send can have a credit: 0 if there is one from the start. */
    long nextAt() {
        if (returnedAt.length == 0 || sent < capacity) {
            return 0;
        }
        int awaited = sent - capacity;
        senderWaits = awaited >= received;
        return senderWaits ? NOT_YET : returnedAt[awaited % capacity];
    }

    void send() {
        sent++;
    }

    /** A credit comes back. Returns whether the sender waits for it. */
    boolean receive(long end) {
        if (returnedAt.length > 0) {
            returnedAt[received % capacity] = end;
        }
        received++;
        boolean wakes = senderWaits;
        senderWaits = false;
        return wakes;
    }
}
