package dev.penstock.actors.dataplane;

/** The answer to an offer; the caller must do something with each. */
public sealed interface OfferResult {
    /** The whole tensor is in the log; its memory may be reused. */
    record Sent() implements OfferResult {}

    /** The receiver has no free slot. Offer again after {@link FrameListener#onCredit}. */
    record NoCredit() implements OfferResult {}

    /**
     * The log is full or the peer is not connected yet; part of the tensor may be in the log. Offer
     * the same tensor again soon.
     */
    record BackPressured(boolean connected) implements OfferResult {}

    /** The data plane is closed or broken; offering again is pointless. */
    record Failed(String reason) implements OfferResult {}

    OfferResult SENT = new Sent();
    OfferResult NO_CREDIT = new NoCredit();
    OfferResult BACK_PRESSURED = new BackPressured(true);
    OfferResult NOT_CONNECTED = new BackPressured(false);
}
