package dev.penstock.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.report.MemoryPlan;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Runs in which one op of a pair computes while the other waits for a sum of tensor shards, beside
 * the same with one op after the other.
 */
class PairsAtOnceRunTest {
    private static final String OFF = "schedule.pairs-at-once=false";

    @TempDir private Path folder;
    private int runs;

    /** STP over two ranks of two stages each: pairs of all kinds, and backwards in two parts. */
    private Training run(String... settings) throws IOException {
        return Training.onText(Files.createDirectories(folder.resolve("run " + runs++)))
                .set("run.steps=2", "evaluation={every=2, batches=1}", "checkpoint.every=0")
                .set("model.layers=4", "pipeline.stages=2", "schedule={kind=stp}")
                .set("batch={sequences=12, micro-batches=6}", "optimizer.clip-norm=0.5")
                .set(settings);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "parallel={tensor=2}",
                "parallel={tensor=2, data=2, sequence=true}",
                "parallel={tensor=4, tensor-mesh=[2, 2]}",
                "parallel={tensor=[1, 2]}",
            })
    void theBitsAreThoseOfOneOpAfterTheOther(String layout) throws IOException {
        Trained apart = run(layout, "model.tied=false", OFF).complete();
        Training atOnce = run(layout, "model.tied=false");

        Trained ended = atOnce.complete();

        assertSame(ended, apart);
        assertThat(ended.peakBytes()).isEqualTo(planned(atOnce));
        assertThat(ended.sentBytes()).isEqualTo(apart.sentBytes());
    }

    @Test
    void fourShardsAgreeOverTheDataPlane() throws IOException {
        String[] layout = {"parallel={tensor=4}", "model.heads=4", "evaluation.every=0"};
        Trained apart = run(layout).set(OFF).complete();
        Training atOnce = run(layout);

        Trained ended = RanksInOneJvm.complete(atOnce);

        assertSame(ended, apart);
    }

    @Test
    void dualPipesPairsRunAtOnceAsWell() throws IOException {
        String[] layout = {"parallel={tensor=2}", "schedule={kind=dualpipe-v}"};

        assertSame(run(layout).complete(), run(layout).set(OFF).complete());
    }

    /** Ranks of another kind of state share more between ops than pairs allow. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "parallel={data=2, zero={stage=1}}",
                "parallel={data=2, zero={stage=3}}",
                "model.dropout=0.1",
                "schedule={kind=stp, recompute=[0, 2]}",
                "data-plane.codec=fp16",
            })
    void whereOpsShareMoreTheyRunOneAfterTheOther(String layout) throws IOException {
        List<Long> apart = planned(run("parallel.tensor=2", OFF));
        List<Long> atOnce = planned(run("parallel.tensor=2"));

        assertThat(atOnce.getFirst()).isGreaterThan(apart.getFirst());
        assertThat(planned(run("parallel.tensor=2", layout)))
                .isEqualTo(planned(run("parallel.tensor=2", layout, OFF)));
    }

    @Test
    void aRankThatDiesInAPairIsReplacedFromItsMirror() throws IOException {
        String[] settings = {
            "parallel={tensor=2}", "run.steps=4", "evaluation.every=0", "recovery.mirror=on"
        };
        Trained calm = RanksInOneJvm.complete(run(settings));

        Trained disturbed =
                RanksInOneJvm.complete(run(settings).set("fault=[{kill-rank=1, op=0F4, step=3}]"));

        assertThat(disturbed.lossBits()).isEqualTo(calm.lossBits());
    }

    private static void assertSame(Trained actual, Trained expected) {
        assertThat(actual.lossBits()).isEqualTo(expected.lossBits());
        assertThat(actual.gradientNorms()).isEqualTo(expected.gradientNorms());
    }

    private List<Long> planned(Training training) throws IOException {
        try (RunAssembly assembly =
                RunAssembly.of(
                        ConfigLoader.loadWithOrigins(training.configuration(), training.settings()),
                        new RunOptions(
                                "planned",
                                Files.createDirectories(folder.resolve("planned " + runs++)),
                                Optional.empty(),
                                Optional.empty(),
                                Optional.empty(),
                                false))) {
            return assembly.plannedMemory().stream().map(MemoryPlan::total).toList();
        }
    }
}
