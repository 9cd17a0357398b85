package dev.penstock.cuda.nccl;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * One GPU's membership in a communicator. All members call the same in the same order; calls return
 * at once, the work runs on the stream. Sums are in the library's order: the same bits on all
 * members, and others with other members or another wiring. Used by one thread at a time, which has
 * the GPU's context.
 */
public final class NcclMember implements AutoCloseable {
    private static final int SUM = 0;
    private static final int IN_PROGRESS = 7;

    private final NcclFunctions functions;
    private final int members;
    private final int index;
    private final Arena arena = Arena.ofShared();
    private final MemorySegment state = arena.allocate(JAVA_INT);
    private final long communicator;
    private boolean closed;

    NcclMember(Nccl library, byte[] id, int members, int index) {
        this.functions = library.functions();
        this.members = members;
        this.index = index;
        try {
            this.communicator = join(id);
        } catch (RuntimeException e) {
            arena.close();
            throw e;
        }
    }

    private long join(byte[] id) {
        try (Arena call = Arena.ofConfined()) {
            MemorySegment joined = call.allocate(ADDRESS);
            MemorySegment unique = call.allocate(NcclFunctions.UNIQUE_ID);
            unique.copyFrom(MemorySegment.ofArray(id));
            Nccl.check(
                    "ncclCommInitRank of %d members".formatted(members),
                    (int) functions.commInitRank().invokeExact(joined, members, unique, index));
            return joined.get(JAVA_LONG, 0);
        } catch (Throwable e) {
            throw Nccl.rethrown(e);
        }
    }

    private static int type(DType type) {
        return switch (type) {
            case F32 -> 7;
            case BF16 -> 9;
            case F16 -> 6;
            case I32 -> 2;
            case I8, DYNAMIC8, DYNAMIC8_POSITIVE -> 0;
            case I64 -> 4;
        };
    }

    /** Sums the elements at an address on all members. */
    public void allReduce(long address, long elements, DType type, long stream) {
        try {
            Nccl.check(
                    "ncclAllReduce",
                    (int)
                            functions
                                    .allReduce()
                                    .invokeExact(
                                            address,
                                            address,
                                            elements,
                                            type(type),
                                            SUM,
                                            communicator,
                                            stream));
        } catch (Throwable e) {
            throw Nccl.rethrown(e);
        }
    }

    /**
     * Sums each part on the member whose it is.
     *
     * @param bounds where parts begin, in elements, and the last one's end: one more than members
     */
    public void reduceScatter(long address, long[] bounds, DType type, long stream) {
        try {
            if (isEven(bounds)) {
                Nccl.check(
                        "ncclReduceScatter",
                        (int)
                                functions
                                        .reduceScatter()
                                        .invokeExact(
                                                address,
                                                at(address, bounds[index], type),
                                                bounds[1] - bounds[0],
                                                type(type),
                                                SUM,
                                                communicator,
                                                stream));
                return;
            }
            Nccl.check("ncclGroupStart", (int) functions.groupStart().invokeExact());
            for (int part = 0; part < members; part++) {
                if (bounds[part + 1] == bounds[part]) {
                    continue;
                }
                long from = at(address, bounds[part], type);
                Nccl.check(
                        "ncclReduce",
                        (int)
                                functions
                                        .reduce()
                                        .invokeExact(
                                                from,
                                                from,
                                                bounds[part + 1] - bounds[part],
                                                type(type),
                                                SUM,
                                                part,
                                                communicator,
                                                stream));
            }
            Nccl.check("ncclGroupEnd", (int) functions.groupEnd().invokeExact());
        } catch (Throwable e) {
            throw Nccl.rethrown(e);
        }
    }

    /** Brings each part from the member whose it is to all others; see {@link #reduceScatter}. */
    public void allGather(long address, long[] bounds, DType type, long stream) {
        try {
            if (isEven(bounds)) {
                Nccl.check(
                        "ncclAllGather",
                        (int)
                                functions
                                        .allGather()
                                        .invokeExact(
                                                at(address, bounds[index], type),
                                                address,
                                                bounds[1] - bounds[0],
                                                type(type),
                                                communicator,
                                                stream));
                return;
            }
            Nccl.check("ncclGroupStart", (int) functions.groupStart().invokeExact());
            for (int part = 0; part < members; part++) {
                if (bounds[part + 1] == bounds[part]) {
                    continue;
                }
                long from = at(address, bounds[part], type);
                Nccl.check(
                        "ncclBroadcast",
                        (int)
                                functions
                                        .broadcast()
                                        .invokeExact(
                                                from,
                                                from,
                                                bounds[part + 1] - bounds[part],
                                                type(type),
                                                part,
                                                communicator,
                                                stream));
            }
            Nccl.check("ncclGroupEnd", (int) functions.groupEnd().invokeExact());
        } catch (Throwable e) {
            throw Nccl.rethrown(e);
        }
    }

    private static long at(long address, long element, DType type) {
        return address + element * type.bytes();
    }

    /** Whether all parts have as many elements: the functions that are made for it want that. */
    private boolean isEven(long[] bounds) {
        for (int part = 0; part < members; part++) {
            if (bounds[part + 1] - bounds[part] != bounds[1] - bounds[0]) {
                return false;
            }
        }
        return true;
    }

    /**
     * Asks for errors that no call has shown.
     *
     * @throws DeviceException if there are any
     */
    public void requireWell() {
        try {
            Nccl.check(
                    "ncclCommGetAsyncError",
                    (int) functions.commGetAsyncError().invokeExact(communicator, state));
        } catch (Throwable e) {
            throw Nccl.rethrown(e);
        }
        int found = state.get(JAVA_INT, 0);
        if (found != IN_PROGRESS) {
            Nccl.check("a collective of NCCL", found);
        }
    }

    /**
     * Leaves when nothing is under way. Idempotent. Never throws: that of a lost GPU closes too.
     */
    @Override
    public void close() {
        leave(false);
    }

    /** Leaves and ends what waits for others. Idempotent; never throws. */
    public void abort() {
        leave(true);
    }

    private void leave(boolean atOnce) {
        if (closed) {
            return;
        }
        closed = true;
        try {
            int result =
                    atOnce
                            ? (int) functions.commAbort().invokeExact(communicator)
                            : (int) functions.commDestroy().invokeExact(communicator);
            if (result != 0) {
                System.getLogger(NcclMember.class.getName())
                        .log(System.Logger.Level.WARNING, "leaving NCCL: result " + result);
            }
        } catch (Throwable e) {
            throw Nccl.rethrown(e);
        } finally {
            arena.close();
        }
    }
}
