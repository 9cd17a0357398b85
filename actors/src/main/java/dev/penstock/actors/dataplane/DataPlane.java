package dev.penstock.actors.dataplane;

import java.util.List;
import java.util.Map;

/**
 * The data plane of one process: one poller thread, an endpoint per rank that lives here.
 *
 * <p>Frames carry the run's identity and epoch; those of another run or epoch are refused and
 * counted.
 */
public interface DataPlane extends AutoCloseable {
    /**
     * Opens a rank's endpoint. Returns at once; peers may open theirs later (offers answer {@link
     * OfferResult#NOT_CONNECTED} until then).
     *
     * @param listener told of arrivals by the poller's thread
     * @throws DataPlaneException listing everything wrong with the channels and addresses, or if
     *     the rank is open
     */
    Endpoint open(Opening opening, FrameListener listener);

    /** Same as {@link #open(Opening, FrameListener)}, all peers on this media driver. */
    default Endpoint open(
            int rank,
            int epoch,
            List<Inbound> inbound,
            List<Outbound> outbound,
            FrameListener listener) {
        return open(new Opening(rank, epoch, inbound, outbound, Map.of()), listener);
    }

    /** Same as {@link #open(Opening, FrameListener)} in epoch 0, all peers on this media driver. */
    default Endpoint open(
            int rank, List<Inbound> inbound, List<Outbound> outbound, FrameListener listener) {
        return open(rank, 0, inbound, outbound, listener);
    }

    /** What other processes need to know to exchange tensors with this one. */
    PeerAddress address();

    /**
     * Whether sent tensors may be kept until the receiver has checked them, so that a rank needs as
     * many more tensors per outbound channel as it has credits.
     */
    boolean keepsSentTensors();

    /**
     * Whether all that ranks tell each other has to come this way, so that ranks of one process
     * meet here as well, as though each had a process of its own.
     */
    default boolean carriesAll() {
        return false;
    }

    /**
     * Whether the transport has given this process up, as it does with one that stood still for too
     * long: nothing opens here any more, and another data plane has to be joined.
     */
    default boolean isLost() {
        return false;
    }

    /**
     * Goes over to another media driver, if this is not the one in use. Only while no endpoint is
     * open.
     *
     * @param link directory of the driver
     */
    default void relink(String link) {
        throw new DataPlaneException("this data plane cannot go over to the driver in " + link);
    }

    /** Closes all endpoints and the poller. Idempotent. */
    @Override
    void close();
}
