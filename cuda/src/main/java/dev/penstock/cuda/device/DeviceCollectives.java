package dev.penstock.cuda.device;

import java.util.UUID;

/**
 * A device's part in sums and gathers that devices do among themselves by a library of their maker.
 * The order of addends is the library's: the same bits for all members, but others than those of
 * another grouping or wiring. All members begin the same in the same order. Used by the device's
 * thread, but for {@link #join}.
 */
public interface DeviceCollectives extends AutoCloseable {
    /** For people, such as {@code NCCL 2.27.3 in /usr/lib/x86_64-linux-gnu/libnccl.so.2}. */
    String name();

    /** Which device of its process it is, for people. */
    int device();

    /**
     * Which device it is, whatever processes and machines call it; members are to have different
     * ones.
     */
    UUID deviceId();

    /** Bytes of {@link #newId}. */
    int idBytes();

    /** What one member makes and all others must be told before they join. */
    byte[] newId();

    /**
     * Joins the members with this id; once. Waits for all of them, so on a thread that has the
     * time; {@link #close} ends the membership of one that comes too late.
     *
     * @param index of this member, from 0
     * @throws DeviceException if the library refuses
     */
    void join(byte[] id, int members, int index);

    /**
     * Begins to sum a tensor on all members, once the kernels asked for so far are done.
     *
     * @param tensor dense
     * @return its number, rising
     */
    long allReduce(Tensor tensor);

    /**
     * Begins to sum each part of a tensor on the member whose it is; the others are undefined.
     *
     * @param whole dense
     * @param bounds where each part begins, in elements, and the end of the last
     * @return as {@link #allReduce}
     */
    long reduceScatter(Tensor whole, long[] bounds);

    /** Begins to bring each part from its member to all; see {@link #reduceScatter}. */
    long allGather(Tensor whole, long[] bounds);

    /**
     * Whether one that was begun, and all before it, is done: kernels asked for from now on see it.
     * Never waits.
     *
     * @throws DeviceException if it failed, or a member's did
     */
    boolean isDone(long number);

    /** Ends what is under way and leaves. Idempotent; never throws. */
    @Override
    void close();
}
