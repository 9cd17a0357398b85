package dev.penstock.actors.spi;

import dev.penstock.cuda.device.Device;

/** Builds the computation of a stage: allocates its memory and fills its parameters. */
@FunctionalInterface
public interface StageProgramFactory {
    /**
     * @param stage global stage index
     * @param device the device that the shard actor owns; the program allocates in its memory
     */
    StageProgram create(int stage, Device device);

    /**
     * Builds a mirror of a stage, from the same first values.
     *
     * @param stage global stage index
     * @param device of the rank that holds the mirror
     */
    default StageMirror mirror(int stage, Device device) {
        throw new UnsupportedOperationException("these stages cannot be mirrored");
    }

    /**
     * A factory of the same stages and mirrors without first values: the caller gives them all of
     * their state. May be the same factory, which only takes longer.
     */
    default StageProgramFactory blank() {
        return this;
    }

    /**
     * A factory of the same stages and mirrors as the run's checkpoint after {@code step} has them.
     *
     * @throws RuntimeException there or from {@link #create} if that checkpoint cannot be read
     */
    default StageProgramFactory startingAt(long step) {
        throw new UnsupportedOperationException("these stages have no checkpoints");
    }
}
