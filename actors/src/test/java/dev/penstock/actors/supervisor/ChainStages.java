package dev.penstock.actors.supervisor;

import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.StageBuilder;
import dev.penstock.actors.spi.StageMirror;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.actors.spi.StageProgramFactory;
import dev.penstock.cuda.device.Device;

/** Stages of runs in which nobody dies: they are built once, from their own first values. */
@FunctionalInterface
interface ChainStages extends StageProgramFactory {
    @Override
    StageProgram create(int stage, RankPlace place, Device device);

    @Override
    default StageMirror mirror(int stage, RankPlace place, Device device) {
        throw new AssertionError("nobody asked for mirrors");
    }

    @Override
    default StageBuilder blank() {
        throw new AssertionError("nobody died");
    }

    @Override
    default StageBuilder startingAt(long step) {
        throw new AssertionError("there are no checkpoints");
    }
}
