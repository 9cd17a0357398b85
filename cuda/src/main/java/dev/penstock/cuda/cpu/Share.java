package dev.penstock.cuda.cpu;

/** Which part of a range a thread works on: pieces of equal size, cut at multiples of a quantum. */
final class Share {
    private Share() {}

    /**
     * First element of a thread's part of {@code [0, size)}; the part ends where the next begins.
     */
    static int start(int size, int quantum, int thread, int threads) {
        long quanta = (size + (long) quantum - 1) / quantum;
        return (int) Math.min(size, quanta * thread / threads * quantum);
    }
}
