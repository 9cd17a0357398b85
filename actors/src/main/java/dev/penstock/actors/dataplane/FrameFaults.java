package dev.penstock.actors.dataplane;

/**
 * Harms data frames on their way, for tests and for faults injected on purpose. With any other than
 * {@link #NONE} every link checks its frames, so that the harm is found and made good.
 */
@FunctionalInterface
public interface FrameFaults {
    /** Nothing goes wrong; costs nothing. */
    FrameFaults NONE = (_, _) -> Fate.PASS;

    /** What becomes of a frame. */
    sealed interface Fate {
        /** It arrives. */
        record Pass() implements Fate {}

        /** It is lost. */
        record Drop() implements Fate {}

        /** It arrives twice. */
        record Duplicate() implements Fate {}

        /** One bit of its payload arrives flipped. */
        record Corrupt() implements Fate {}

        /**
         * It arrives late, and with it all behind it on the same link.
         *
         * @param nanos at least 0
         */
        record Delay(long nanos) implements Fate {}

        Fate PASS = new Pass();
        Fate DROP = new Drop();
        Fate DUPLICATE = new Duplicate();
        Fate CORRUPT = new Corrupt();
    }

    /**
     * Decides before a frame is sent. Called by the sending rank's thread or the poller's, one at a
     * time per link: must return at once.
     *
     * @param tensor that the frame carries a chunk of
     * @param frame number of the frame on its channel since the endpoint was opened, chunks sent
     *     again counted anew
     */
    Fate of(FrameKey tensor, long frame);
}
