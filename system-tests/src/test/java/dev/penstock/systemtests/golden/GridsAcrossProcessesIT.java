package dev.penstock.systemtests.golden;

import static dev.penstock.systemtests.support.TestCluster.train;
import static dev.penstock.systemtests.support.TestCluster.worker;
import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.launch.RanksInOneJvm;
import dev.penstock.systemtests.support.CalmRuns;
import dev.penstock.systemtests.support.GoldenTruth;
import dev.penstock.systemtests.support.HostedCli;
import dev.penstock.systemtests.support.TestCluster;
import dev.penstock.systemtests.support.TrafficTruth;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Shards, context parts and replicas that live in different processes sum and gather over the data
 * plane: the losses have the bits of one process, and are PyTorch's.
 */
@Timeout(value = 5, unit = TimeUnit.MINUTES)
class GridsAcrossProcessesIT {
    private static final Duration PATIENCE = Duration.ofSeconds(120);

    @TempDir Path folder;

    @Test
    void aProcessPerRankGivesTheBitsOfOneProcess() throws Exception {
        String parallel = "data = 2, zero.stage = 3";

        Trained apart = apart(1, parallel, "udp").set("pipeline.processes=per-stage").complete();

        expectTheSame(apart, 1, parallel);
    }

    /** Each rank has its own data plane, as if it had its own process. */
    @ParameterizedTest(name = "{0} stages, {1}")
    @CsvSource(
            delimiter = '|',
            value = {
                "1 | data = 2",
                "1 | tensor = 2",
                "1 | context = 2",
                "2 | data = 2, zero { stage = 2, reduce = per-micro-batch }, ring-from = 0 B"
            })
    void ranksThatShareNothingGiveTheBitsOfOneProcess(int stages, String parallel)
            throws Exception {
        expectTheSame(RanksInOneJvm.complete(apart(stages, parallel, "ipc")), stages, parallel);
    }

    private Training apart(int stages, String parallel, String transport) {
        return golden("apart", stages, parallel).set("data-plane.transport=" + transport);
    }

    private void expectTheSame(Trained apart, int stages, String parallel) throws Exception {
        Trained together = golden("together", stages, parallel).complete();
        assertThat(apart.lossBits()).isEqualTo(together.lossBits());
        assertThat(apart.gradientNorms()).isEqualTo(together.gradientNorms());
        GoldenTruth.expectLosses(apart, true, "loss_fp64_accum4");
        TrafficTruth.expectPredicted(apart);
    }

    private Training golden(String name, int stages, String parallel) {
        return Training.golden(folder.resolve(name), true)
                .set("run.steps=3", "pipeline.stages=" + stages, "parallel={" + parallel + "}");
    }

    /** Each node has two ranks: some members of a group share a process, others do not. */
    @Test
    void aClusterTrainsAGridWithTheBitsOfOneProcess() throws Exception {
        String[] grid = {"run.steps=4", "parallel={tensor=2, data=2, zero.stage=3}"};
        CalmRuns.CalmRun alone = CalmRuns.onText(grid);
        Path configuration = Training.onText(folder.resolve("text")).configuration();
        var cluster = new TestCluster(folder, PATIENCE);
        try (HostedCli seed = cluster.seed();
                HostedCli _ = worker(seed);
                HostedCli _ = worker(seed);
                HostedCli train =
                        train(seed, configuration, grid[0], grid[1], "pipeline.ranks-per-node=4")) {
            assertThat(train.awaitEnd(PATIENCE)).as(train.output()).isZero();

            assertThat(cluster.run().lossBits()).isEqualTo(alone.lossBits());
            assertThat(cluster.run().validationBits()).isEqualTo(alone.validationBits());
            assertThat(train.output()).contains("placed: ranks ");
        }
    }
}
