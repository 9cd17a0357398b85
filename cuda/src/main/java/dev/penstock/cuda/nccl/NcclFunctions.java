package dev.penstock.cuda.nccl;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;

/**
 * The C functions of one library, as nccl.h 2.x declares them. Device pointers, communicators and
 * streams are longs; all functions return {@code ncclResult_t}, 0 for success.
 *
 * @param getVersion (int*)
 * @param getUniqueId (ncclUniqueId*)
 * @param commInitRank (ncclComm_t*, ranks, ncclUniqueId by value, rank); waits for all ranks
 * @param commDestroy (comm)
 * @param commAbort (comm); ends what waits
 * @param commGetAsyncError (comm, ncclResult_t*)
 * @param groupStart ()
 * @param groupEnd ()
 * @param allReduce (send, receive, count, type, op, comm, stream)
 * @param reduceScatter (send, receive, count of a part, type, op, comm, stream)
 * @param allGather (send, receive, count of a part, type, comm, stream)
 * @param reduce (send, receive, count, type, op, root, comm, stream)
 * @param broadcast (send, receive, count, type, root, comm, stream)
 */
record NcclFunctions(
        MethodHandle getVersion,
        MethodHandle getUniqueId,
        MethodHandle commInitRank,
        MethodHandle commDestroy,
        MethodHandle commAbort,
        MethodHandle commGetAsyncError,
        MethodHandle groupStart,
        MethodHandle groupEnd,
        MethodHandle allReduce,
        MethodHandle reduceScatter,
        MethodHandle allGather,
        MethodHandle reduce,
        MethodHandle broadcast) {

    /** {@code struct { char internal[128]; }}. */
    static final MemoryLayout UNIQUE_ID =
            MemoryLayout.structLayout(MemoryLayout.sequenceLayout(Nccl.ID_BYTES, JAVA_BYTE));

    /**
     * Binds the functions.
     *
     * @throws java.util.NoSuchElementException if it lacks a function
     */
    static NcclFunctions of(SymbolLookup library) {
        return new NcclFunctions(
                result(library, "ncclGetVersion", ADDRESS),
                result(library, "ncclGetUniqueId", ADDRESS),
                result(library, "ncclCommInitRank", ADDRESS, JAVA_INT, UNIQUE_ID, JAVA_INT),
                result(library, "ncclCommDestroy", JAVA_LONG),
                result(library, "ncclCommAbort", JAVA_LONG),
                result(library, "ncclCommGetAsyncError", JAVA_LONG, ADDRESS),
                result(library, "ncclGroupStart"),
                result(library, "ncclGroupEnd"),
                result(
                        library,
                        "ncclAllReduce",
                        JAVA_LONG,
                        JAVA_LONG,
                        JAVA_LONG,
                        JAVA_INT,
                        JAVA_INT,
                        JAVA_LONG,
                        JAVA_LONG),
                result(
                        library,
                        "ncclReduceScatter",
                        JAVA_LONG,
                        JAVA_LONG,
                        JAVA_LONG,
                        JAVA_INT,
                        JAVA_INT,
                        JAVA_LONG,
                        JAVA_LONG),
                result(
                        library,
                        "ncclAllGather",
                        JAVA_LONG,
                        JAVA_LONG,
                        JAVA_LONG,
                        JAVA_INT,
                        JAVA_LONG,
                        JAVA_LONG),
                result(
                        library,
                        "ncclReduce",
                        JAVA_LONG,
                        JAVA_LONG,
                        JAVA_LONG,
                        JAVA_INT,
                        JAVA_INT,
                        JAVA_INT,
                        JAVA_LONG,
                        JAVA_LONG),
                result(
                        library,
                        "ncclBroadcast",
                        JAVA_LONG,
                        JAVA_LONG,
                        JAVA_LONG,
                        JAVA_INT,
                        JAVA_INT,
                        JAVA_LONG,
                        JAVA_LONG));
    }

    private static MethodHandle result(
            SymbolLookup library, String name, MemoryLayout... arguments) {
        return Linker.nativeLinker()
                .downcallHandle(
                        library.findOrThrow(name), FunctionDescriptor.of(JAVA_INT, arguments));
    }
}
