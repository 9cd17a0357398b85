package dev.penstock.systemtests.cluster;

import static dev.penstock.systemtests.support.TestCluster.address;
import static dev.penstock.systemtests.support.TestCluster.runs;
import static dev.penstock.systemtests.support.TestCluster.train;
import static dev.penstock.systemtests.support.TestCluster.trainProcess;
import static dev.penstock.systemtests.support.TestCluster.worker;
import static dev.penstock.systemtests.support.TestCluster.workerProcess;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.systemtests.support.CalmRuns;
import dev.penstock.systemtests.support.ForkedCli;
import dev.penstock.systemtests.support.HostedCli;
import dev.penstock.systemtests.support.TestCluster;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Seeds, workers and clients: a whole run in processes, and what is said to users. */
@Tag("plain-code")
@Timeout(value = 5, unit = TimeUnit.MINUTES)
class ClusterIT {
    private static final Duration PATIENCE = Duration.ofSeconds(90);

    @TempDir Path folder;

    private TestCluster cluster;

    @BeforeEach
    void layOut() {
        cluster = new TestCluster(folder, PATIENCE);
    }

    /**
     * Each node has two shards, which exchange data in its memory. The nodes that are told to end
     * have processes of their own, for signals.
     */
    @Test
    void aClusterTrainsWithTheBitsOfOneProcess() throws Exception {
        CalmRuns.CalmRun alone = CalmRuns.onText("parallel.tensor=2");
        Path configuration = Training.onText(folder.resolve("text")).configuration();
        try (ForkedCli seed = cluster.seedProcess("cluster.cluster-id=bits");
                ForkedCli first = workerProcess(seed, "cluster.cluster-id=bits");
                HostedCli _ = worker(seed, "cluster.cluster-id=bits");
                HostedCli train =
                        train(
                                seed,
                                configuration,
                                "parallel.tensor=2",
                                "pipeline.ranks-per-node=2")) {
            assertThat(train.awaitEnd(PATIENCE)).as(train.output()).isZero();

            Path run = folder.resolve("runs/tiny-1");
            assertThat(Trained.lossBits(run)).isEqualTo(alone.lossBits());
            assertThat(new Trained(run, 0, "", "").validationBits())
                    .isEqualTo(alone.validationBits());
            assertThat(train.output())
                    .contains("the cluster trains tiny-1")
                    .contains("placed: ranks 0-1 on ")
                    .containsPattern("step 12/12 .* bubble [0-9.]+ % \\(predicted")
                    .contains("completed in");
            assertThat(run.resolve("report.html"))
                    .content()
                    .contains("<td>kernels</td>")
                    .as("no blocks between processes")
                    .doesNotContain("<td>collectives</td>");
            assertThat(run.resolve("checkpoints/step-000012")).isDirectory();
            seed.signal("TERM");
            assertThat(seed.awaitEnd(PATIENCE)).as(seed.output()).isZero();
            first.signal("INT");
            assertThat(first.awaitEnd(PATIENCE)).as(first.output()).isZero();
        }
    }

    @Test
    void aRunWaitsForNodesAndContinuesWithoutItsClient() throws Exception {
        Path configuration = Training.onText(folder.resolve("text")).configuration();
        try (HostedCli seed = cluster.seed();
                HostedCli _ = worker(seed);
                ForkedCli train =
                        trainProcess(
                                seed,
                                configuration,
                                "pipeline.ranks-per-node=1",
                                "run.steps=1000000")) {
            train.awaitOutput("waits for 1 more node with .* at most 1 on a node; the 1 node here");
            train.signal("INT");
            assertThat(train.awaitEnd(PATIENCE)).isEqualTo(ExitCode.INTERRUPTED);
            assertThat(train.output())
                    .contains("penstock attach tiny-1 --cluster " + address(seed));
            JsonNode waiting = runs(seed);
            assertThat(waiting.at("/runs/0/run").asText()).isEqualTo("tiny-1");
            assertThat(waiting.at("/runs/0/state").asText()).isEqualTo("WAITING");
            assertThat(waiting.at("/nodes")).hasSize(1);

            try (HostedCli _ = worker(seed);
                    HostedCli attached =
                            HostedCli.start(
                                    List.of("attach", "tiny-1", "--cluster", address(seed)))) {
                attached.awaitOutput("step \\d+/1000000");
                assertThat(runs(seed).at("/runs/0/state").asText()).isEqualTo("RUNNING");
                assertThat(Cli.run("stop", "tiny-2", "--cluster", address(seed)).err())
                        .contains("expected a run of this cluster, got tiny-2; it has tiny-1");
                assertThat(Cli.run("stop", "tiny-1", "--cluster", address(seed)).exitCode())
                        .isEqualTo(ExitCode.OK);

                assertThat(attached.awaitEnd(PATIENCE)).isEqualTo(ExitCode.INTERRUPTED);
                assertThat(attached.output()).contains("interrupted after step");
                assertThat(runs(seed).at("/runs/0/state").asText()).isEqualTo("STOPPED");
            }
        }
    }

    @Test
    void aCustomOrderIsSentToTheNodesAndTrained() throws Exception {
        Path configuration = Training.onText(folder.resolve("text")).configuration();
        Path order = folder.resolve("mine.txt");
        Cli made =
                Cli.run(
                        "schedule",
                        "generate",
                        "gpipe",
                        "--ranks",
                        "2",
                        "--micro-batches",
                        "4",
                        "--output",
                        order.toString());
        assertThat(made.exitCode()).as(made.err()).isZero();
        try (HostedCli seed = cluster.seed();
                HostedCli _ = worker(seed);
                HostedCli train = train(seed, configuration, "schedule.file=" + order)) {
            assertThat(train.awaitEnd(PATIENCE)).as(train.output()).isZero();
            assertThat(train.output()).contains("placed: ranks 0-1 on ");
            assertThat(folder.resolve("runs/tiny-1/order-mine.txt")).exists();
        }
    }

    @Test
    void aSeedThatDoesNotHaveTheDataRefusesTheRun() throws Exception {
        Path configuration = Training.onText(folder.resolve("text")).configuration();
        try (HostedCli seed = cluster.seed()) {
            Cli refused =
                    Cli.run(
                            "train",
                            configuration.toString(),
                            "--cluster",
                            address(seed),
                            "--set",
                            "model.context=100000");

            assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
            assertThat(refused.err()).contains("the seed finds:");
            assertThat(folder.resolve("runs/tiny-1")).doesNotExist();
        }
    }

    @Test
    void aPortThatIsTakenIsNamedInTheError() throws Exception {
        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            Cli seed =
                    Cli.run(
                            "node",
                            "../sample-configs/cluster/seed.conf",
                            "--port",
                            "" + taken.getLocalPort(),
                            "--set",
                            "cluster.runs=\"" + folder.resolve("runs") + "\"");
            assertThat(seed.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
            assertThat(seed.err())
                    .contains("expected to listen on 127.0.0.1:" + taken.getLocalPort())
                    .contains("cluster.port");
        }
    }

    @Test
    void aNodeOfAnotherClusterIsRefusedOnBothSides() throws Exception {
        try (ForkedCli seed = cluster.seedProcess("cluster.cluster-id=blue")) {
            Cli stranger =
                    Cli.run(
                            "node",
                            "../sample-configs/cluster/worker.conf",
                            "--cluster",
                            address(seed),
                            "--set",
                            "cluster.cluster-id=red");
            assertThat(stranger.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
            assertThat(stranger.err()).contains("cluster-id red here, blue there");
            seed.awaitOutput("cluster-id blue here, red there");
        }
    }

    @Test
    void anAddressWithoutASeedIsReported() {
        Cli none = Cli.run("runs", "--cluster", "127.0.0.1:1");

        assertThat(none.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(none.err()).contains("expected a seed at 127.0.0.1:1").contains("penstock node");
    }

    /** Kills the local cluster by SIGKILL; all its processes end with it. */
    @Test
    void aLocalClusterSurvivesAWorkerAndNoProcessSurvivesTheCluster() throws Exception {
        try (ForkedCli cluster =
                ForkedCli.startLight(
                        List.of(
                                "local-cluster",
                                "--nodes",
                                "2",
                                "--port",
                                "0",
                                "--runs",
                                folder.resolve("runs").toString()))) {
            cluster.awaitOutput("1 seed, 2 workers");
            List<ProcessHandle> children = cluster.descendants();
            assertThat(children).hasSize(3);

            long worker = Long.parseLong(cluster.awaitOutput("worker worker-2 \\(pid (\\d+)\\)"));
            assertThat(ProcessHandle.of(worker).orElseThrow().destroyForcibly()).isTrue();
            cluster.awaitOutput(
                    "worker-2 ended with exit code 137 \\(signal 9\\); the cluster goes on");
            cluster.awaitOutput("1 seed, 1 worker");
            cluster.signal("KILL");

            for (ProcessHandle child : children) {
                child.onExit().get(60, TimeUnit.SECONDS);
            }
        }
    }
}
