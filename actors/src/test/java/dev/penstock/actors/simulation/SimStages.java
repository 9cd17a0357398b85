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
        return build(stage, place, device);
    }

    @Override
    public StageMirror mirror(int stage, RankPlace place, Device device) {
        return build(stage, place, device);
    }

    private SimStage build(int stage, RankPlace place, Device device) {
        var built =
                new SimStage(
                        stage,
                        place,
                        simulation.scenario,
                        simulation.checks,
                        simulation.nan,
                        device);
        if (from == FRESH) {
            simulation.checks.seen.state(built.part(), 0, SimStage.bits(built.tensors()));
            return built;
        }
        return built.withBits(simulation.disk.bits(from, built.part()), from);
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
