package dev.penstock.schedules.plan.swap;

import java.util.List;

/**
 * What is not cut: a layer, the embedding or the head; or several together.
 *
 * @param bytes of its parameters, and as many of their gradients
 * @param forward time of a micro-batch, in any unit
 * @param backward time of a micro-batch
 * @param load time in which the parameters are loaded, or the gradients written
 */
public record SwapPart(long bytes, double forward, double backward, double load) {
    private static final SwapPart NOTHING = new SwapPart(0, 0, 0, 0);

    /** Several parts as one. */
    public static SwapPart together(List<SwapPart> parts) {
        return parts.stream().reduce(NOTHING, SwapPart::plus);
    }

    /** The same where the forward runs again before the backward. */
    public SwapPart forwardAgain() {
        return new SwapPart(bytes, forward, forward + backward, load);
    }

    private SwapPart plus(SwapPart other) {
        return new SwapPart(
                bytes + other.bytes,
                forward + other.forward,
                backward + other.backward,
                load + other.load);
    }
}
