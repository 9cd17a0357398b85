package dev.penstock.actors.dataplane;

import java.util.List;

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
     * @param rank the rank that sends and receives here; its inbox is derived from it
     * @param epoch of the run; frames of another are refused, and streams of different epochs never
     *     meet
     * @param inbound the channels that end here, each at most once
     * @param outbound the channels that begin here, each at most once
     * @param listener told of arrivals by the poller's thread
     * @throws DataPlaneException listing everything wrong with the channels, or if the rank is open
     */
    Endpoint open(
            int rank,
            int epoch,
            List<Inbound> inbound,
            List<Outbound> outbound,
            FrameListener listener);

    /** As the other, in the epoch of this data plane's settings. */
    Endpoint open(int rank, List<Inbound> inbound, List<Outbound> outbound, FrameListener listener);

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
