package dev.penstock.actors.simulation;

import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.StageBuilder;
import dev.penstock.actors.spi.StageMirror;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.actors.spi.StageProgramFactory;
import dev.penstock.cuda.device.Device;

/**
 * Builds the stages of a process.
 *
 * @param from the checkpoint that they start from, or {@link #FRESH}
 */
record SimStages(Simulation simulation, long from) implements StageProgramFactory {
    static final long FRESH = -1;

    @Override
    public StageProgram create(int stage, RankPlace place, Device device) {
        return build(stage, device);
    }

    @Override
    public StageMirror mirror(int stage, RankPlace place, Device device) {
        return build(stage, device);
    }

    private SimStage build(int stage, Device device) {
        var built =
                new SimStage(
                        stage,
                        simulation.plan.ranks(),
                        Scenario.MICRO_BATCHES,
                        simulation.checks,
                        simulation.nan,
                        device);
        return from == FRESH ? built : built.withBits(simulation.disk.bits(from, stage));
    }

    @Override
    public StageBuilder blank() {
        return this;
    }

    @Override
    public StageBuilder startingAt(long step) {
        return new SimStages(simulation, step);
    }
}
