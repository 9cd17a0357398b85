package dev.penstock.actors.spi;

/**
 * A second copy of a stage's parameters and optimizer state on another rank. It starts from the
 * same values and applies the same updates to the same gradients, so it stays equal to the stage
 * bit for bit without ever computing a forward or a backward. Allocates when it is built; used by
 * one thread at a time.
 */
public interface StageMirror extends AutoCloseable {
    /** The global index of the mirrored stage. */
    int stage();

    /** The first layer of the mirrored stage. */
    default int firstLayer() {
        return stage();
    }

    /** How many layers the mirrored stage has. */
    default int layers() {
        return 1;
    }

    /** What is kept equal; its gradients are where the stage's arrive. */
    TrainedState trained();

    /**
     * Applies the optimizer to the gradients that arrived and clears them.
     *
     * @param clipFactor as the stage itself got it
     */
    void update(long step, double clipFactor);

    /** As {@link StageProgram#skipped}. */
    default void skipped(long steps) {}

    @Override
    void close();
}
