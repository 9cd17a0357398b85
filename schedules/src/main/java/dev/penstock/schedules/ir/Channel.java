package dev.penstock.schedules.ir;

/**
 * The way of tensors from one stage to a neighbour. Activations travel to the next stage, gradients
 * to the stage before; credits are counted per channel. In a wired order there is one from each
 * peer of a stage to each peer of its neighbour.
 *
 * @param fromPeer whose rank sends; 0 in one pipeline
 * @param toPeer whose rank receives; 0 in one pipeline
 */
public record Channel(int fromStage, int toStage, int fromPeer, int toPeer) {
    public Channel {
        if (Math.abs(fromStage - toStage) != 1 || fromStage < 0 || toStage < 0) {
            throw new IllegalArgumentException(
                    "a channel joins neighbouring stages, got %d and %d"
                            .formatted(fromStage, toStage));
        }
        if (fromPeer < 0 || toPeer < 0) {
            throw new IllegalArgumentException(
                    "peers are numbered from 0, got %d and %d".formatted(fromPeer, toPeer));
        }
    }

    /** Of one pipeline. */
    public Channel(int fromStage, int toStage) {
        this(fromStage, toStage, 0, 0);
    }

    /** The channel that brings a stage its input. */
    public static Channel activationsInto(int stage) {
        return new Channel(stage - 1, stage);
    }

    /** The channel that brings a stage the gradient of its output. */
    public static Channel gradientsInto(int stage) {
        return new Channel(stage + 1, stage);
    }

    /** The same way between these peers. */
    public Channel between(int sendingPeer, int receivingPeer) {
        return new Channel(fromStage, toStage, sendingPeer, receivingPeer);
    }

    /** Whether it carries activations; else gradients. */
    public boolean forward() {
        return fromStage < toStage;
    }
}
