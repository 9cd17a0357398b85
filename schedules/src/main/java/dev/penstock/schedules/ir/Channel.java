package dev.penstock.schedules.ir;

/**
 * The way of tensors from one stage to a neighbour. Activations travel to the next stage, gradients
 * to the stage before; credits are counted per channel.
 */
public record Channel(int fromStage, int toStage) {
    public Channel {
        if (Math.abs(fromStage - toStage) != 1 || fromStage < 0 || toStage < 0) {
            throw new IllegalArgumentException(
                    "a channel joins neighbouring stages, got %d and %d"
                            .formatted(fromStage, toStage));
        }
    }

    /** The channel that brings a stage its input. */
    public static Channel activationsInto(int stage) {
        return new Channel(stage - 1, stage);
    }

    /** The channel that brings a stage the gradient of its output. */
    public static Channel gradientsInto(int stage) {
        return new Channel(stage + 1, stage);
    }

    /** Whether it carries activations; else gradients. */
    public boolean forward() {
        return fromStage < toStage;
    }
}
