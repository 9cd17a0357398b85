package dev.penstock.runtime.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.launch.RunParts;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.simulate.ComputeKind;
import dev.penstock.schedules.simulate.ProfileCosts;
import dev.penstock.schedules.simulate.ProfileLine;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** A profile of a run that had certain rates gives these rates back. */
class MeasuredRatesTest {
    private static final String RUN =
            """
            model { context = 32, width = 32, heads = 2, layers = 4 }
            data { source = pom.xml, tokenizer = bytes }
            batch { sequences = 8, micro-batches = 4 }
            """;

    private static final Rates OF_RUN = new Rates(3e9, 2e9, 5e8, 1e8);
    private static final Rates USUAL = new Rates(1e9, 7e9, 7e8);

    /** What such a run leaves behind. */
    private static ProfileCosts profile(MemoryProof proof) {
        var costs = new StepCosts(proof, OF_RUN);
        List<ProfileLine> lines = new ArrayList<>();
        for (RankProgram program : proof.order().programs()) {
            for (int i = 0; i < program.ops().size(); i++) {
                Op op = program.ops().get(i);
                long beside = costs.backgroundNanos(program.rank(), op);
                switch (op) {
                    case Op.Compute part ->
                            lines.add(
                                    new ProfileLine.Computation(
                                            ComputeKind.of(part),
                                            op.stage(),
                                            part.unit().slice(),
                                            costs.nanos(program.rank(), i, op)));
                    case Op.Offload _ -> lines.add(new ProfileLine.Offload(op.stage(), beside));
                    case Op.Reload _ -> lines.add(new ProfileLine.Reload(op.stage(), beside));
                    case Op.GatherParameters _ ->
                            lines.add(new ProfileLine.Gather(op.stage(), beside));
                    case Op.Overlapped _,
                            Op.Transfer _,
                            Op.ReduceGradients _,
                            Op.ReleaseParameters _ -> {}
                }
            }
        }
        lines.add(
                new ProfileLine.Update(
                        Math.round(1e9 * costs.swappedUpdateBytes() / OF_RUN.updateBytes())));
        return new ProfileCosts(lines);
    }

    private static Rates measured(String... settings) {
        LoadedConfig run = ConfigLoader.loadOfRun("run", RUN, List.of(settings));
        return MeasuredRates.of(run, profile(RunParts.proof(run)), RunParts::proof, USUAL);
    }

    private static void expectSame(double actual, double expected) {
        assertThat(actual).isCloseTo(expected, within(0.01 * expected));
    }

    @Test
    void copiesToTheHostHaveTheirRateAndDisksTheUsualOne() {
        Rates rates = measured("pipeline.stages=2", "schedule={kind=gpipe, offload=all}");

        expectSame(rates.flops(), OF_RUN.flops());
        expectSame(rates.hostBytes(), OF_RUN.hostBytes());
        expectSame(rates.diskBytes(), USUAL.diskBytes());
    }

    @Test
    void loadsAndUpdatesOfASwappedRunHaveTheirs() {
        Rates rates =
                measured(
                        "pipeline={stages=1, chunks=6}",
                        "schedule={kind=breadth-first, recompute=full}",
                        "device.swap=swap");

        expectSame(rates.flops(), OF_RUN.flops());
        expectSame(rates.hostBytes(), USUAL.hostBytes());
        expectSame(rates.diskBytes(), OF_RUN.diskBytes());
        expectSame(rates.updateBytes(), OF_RUN.updateBytes());
    }
}
