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
}
