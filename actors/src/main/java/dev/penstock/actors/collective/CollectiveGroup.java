package dev.penstock.actors.collective;

import dev.penstock.cuda.device.Tensor;
import java.util.Arrays;

/**
 * One rank's membership in a group of ranks that sum and gather. All members begin the same
 * collectives in the same order; several may be under way. Tensors are dense. Lives for an epoch.
 * The rank's thread only.
 */
public interface CollectiveGroup {
    /** Members. */
    int size();

    /** This rank among the members, from 0. */
    int index();

    /**
     * Begins to sum: this member's part of {@code whole} becomes the sum over all members' tensors,
     * added in the order of members; the other parts are undefined afterwards.
     *
     * @param whole F32, or I64 whose sums are exact, as many elements as {@code map}
     */
    Collective reduceScatter(Tensor whole, ShardMap map);

    /**
     * Begins to gather: every part of {@code whole} becomes what the member of that number holds in
     * it.
     *
     * @param whole of any type, as many elements as {@code map}
     */
    Collective allGather(Tensor whole, ShardMap map);

    /**
     * Begins to sum on all members: the same bits everywhere, those of {@link #reduceScatter}.
     *
     * @param tensor F32 or I64
     */
    Collective allReduce(Tensor tensor);

    /**
     * Begins to pass on in a ring: {@code sent} goes to the next member, the last one's to the
     * first, and what the previous member sends comes into {@code received}.
     *
     * @param sent dense, of the same type and as many elements on all members; unchanged until all
     *     is done
     * @param received like {@code sent}, and not the same
     */
    Collective pass(Tensor sent, Tensor received);

    /** The member after this one in the ring. */
    default int next() {
        return (index() + 1) % size();
    }

    /** The member before this one in the ring. */
    default int previous() {
        return (index() + size() - 1) % size();
    }

    /**
     * Blocks until a collective is done.
     *
     * @throws dev.penstock.actors.dataplane.DataPlaneException if the epoch ends meanwhile or
     *     somebody does not come in time, saying who
     */
    void await(Collective collective);

    /**
     * Bytes of tensors that this member has sent to others since the epoch began, in collectives of
     * a kind, counted where they left: over a link, or as others read them in shared memory. Those
     * of a collective that is done are all in it.
     */
    long sentBytes(CollectiveKind kind);

    /** The same of all kinds. */
    default long sentBytes() {
        return Arrays.stream(CollectiveKind.values()).mapToLong(this::sentBytes).sum();
    }
}
