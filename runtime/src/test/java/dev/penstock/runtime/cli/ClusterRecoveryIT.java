package dev.penstock.runtime.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/** Nodes of a cluster die by kill -9 in mid-run: the run goes on, to the same losses. */
@EnabledOnOs(OS.LINUX)
@Timeout(value = 5, unit = TimeUnit.MINUTES)
class ClusterRecoveryIT {
    private static final Duration PATIENCE = Duration.ofSeconds(120);

    @TempDir Path folder;

    /** First the spare node takes the dead one's rank; then there is none, until a node joins. */
    @Test
    void aSpareNodeTakesOverAndThenTheRunWaitsForOneThatJoins() throws Exception {
        try (ForkedCli seed = seed();
                ForkedCli one = worker(seed);
                ForkedCli two = worker(seed)) {
            one.awaitOutput("joined");
            two.awaitOutput("joined");
            try (ForkedCli train = train(seed, "pipeline.ranks-per-node=1")) {
                awaitSteps(10);
                ForkedCli owner = ownsDriver(one) ? one : two;
                ForkedCli other = owner == one ? two : one;
                try (ForkedCli _ = worker(seed)) {
                    awaitNodes(seed, 3);
                    other.signal("KILL");
                    train.awaitOutput("recovered: ");

                    owner.signal("KILL");
                    train.awaitOutput("waits for 1 more node with .* at most 1 on a node");
                    assertThat(runs(seed).at("/runs/0/state").asText()).isEqualTo("RECOVERING");
                    assertThat(runs(seed).at("/runs/0/detail").asText()).contains("waits for 1");
                    try (ForkedCli _ = worker(seed)) {
                        awaitRecoveries(2);
                        stopAfterMoreSteps(seed, train);
                    }
                }
            }
        }

        assertThat(run().lossBits()).isEqualTo(SteadyTraining.calmBits(folder, run()));
        assertThat(run().recoveries())
                .allSatisfy(
                        recovery ->
                                assertThat(recovery.get("restart").asText())
                                        .isEqualTo("checkpoint"));
    }

    /** The survivor has room for both ranks, and mirrors of what it has not. */
    @Test
    void aSurvivorTakesOverFromItsMirrorAndAnotherDriverIsStarted() throws Exception {
        try (ForkedCli seed = seed();
                ForkedCli one = worker(seed);
                ForkedCli two = worker(seed)) {
            one.awaitOutput("joined");
            two.awaitOutput("joined");
            try (ForkedCli train = train(seed, "recovery.mirror=on")) {
                awaitSteps(10);
                ForkedCli owner = ownsDriver(one) ? one : two;
                driver(owner).destroyForcibly();
                train.awaitOutput("recovered: ");

                owner.signal("KILL");
                train.awaitOutput("placed: ranks 0-1 on ");
                awaitRecoveries(2);
                stopAfterMoreSteps(seed, train);
            }
        }

        assertThat(run().lossBits()).isEqualTo(SteadyTraining.calmBits(folder, run()));
        assertThat(run().recoveries())
                .extracting(recovery -> recovery.get("restart").asText())
                .containsExactly("memory", "mirror");
        assertThat(run().recoveries())
                .extracting(recovery -> recovery.get("stepsLost").asLong())
                .containsOnly(0L);
    }

    /** Nobody dies: a rank moves between two steps, to a node that came later. */
    @Test
    void rebalancingMovesARankToANodeThatJoinedAndCostsNoStep() throws Exception {
        try (ForkedCli seed = seed();
                ForkedCli one = worker(seed)) {
            one.awaitOutput("joined");
            try (ForkedCli train = train(seed)) {
                awaitSteps(10);
                assertThat(rebalance(seed)).contains("spread over all nodes that have room");
                try (ForkedCli _ = worker(seed)) {
                    awaitNodes(seed, 2);
                    assertThat(rebalance(seed)).contains("ranks [1] go to emptier nodes");
                    train.awaitOutput("recovered: ");
                    assertThat(runs(seed).at("/runs/0/nodes").asInt()).isEqualTo(2);
                    stopAfterMoreSteps(seed, train);
                }
            }
        }

        assertThat(run().lossBits()).isEqualTo(SteadyTraining.calmBits(folder, run()));
        assertThat(run().recoveries())
                .singleElement()
                .satisfies(recovery -> assertThat(recovery.get("stepsLost").asLong()).isZero());
    }

    private static String rebalance(ForkedCli seed) throws Exception {
        Cli moved = Cli.run("rebalance", "tiny-1", "--seed", address(seed));
        assertThat(moved.exitCode()).as(moved.err()).isZero();
        return moved.out();
    }

    private Trained run() {
        return new Trained(folder.resolve("runs/tiny-1"), 0, "", "");
    }

    private void awaitSteps(int steps) {
        await().atMost(PATIENCE)
                .pollInterval(Duration.ofMillis(20))
                .until(() -> run().lossBits().size() >= steps);
    }

    private void awaitRecoveries(int recoveries) {
        await().atMost(PATIENCE).until(() -> run().recoveries().size() >= recoveries);
    }

    private void stopAfterMoreSteps(ForkedCli seed, ForkedCli train) throws Exception {
        awaitSteps(run().lossBits().size() + 5);
        assertThat(Cli.run("stop", "tiny-1", "--seed", address(seed)).exitCode()).isZero();
        assertThat(train.awaitEnd(PATIENCE)).as(train.output()).isEqualTo(ExitCode.INTERRUPTED);
    }

    private static void awaitNodes(ForkedCli seed, int nodes) {
        await().atMost(PATIENCE).until(() -> runs(seed).get("nodes").size() == nodes);
    }

    // ---- processes --------------------------------------------------------------------------

    private static boolean ownsDriver(ForkedCli worker) {
        return !worker.descendants().isEmpty();
    }

    private static ProcessHandle driver(ForkedCli worker) {
        return worker.descendants().getFirst();
    }

    private ForkedCli seed() throws Exception {
        return ForkedCli.start(
                List.of(
                        "node",
                        "../sample-configs/cluster/seed.conf",
                        "--set",
                        "cluster.port=0",
                        "--set",
                        "cluster.runs=\"" + folder.resolve("runs") + "\""));
    }

    private static ForkedCli worker(ForkedCli seed) throws Exception {
        return ForkedCli.start(
                List.of("node", "../sample-configs/cluster/worker.conf", "--seed", address(seed)));
    }

    private ForkedCli train(ForkedCli seed, String... settings) throws Exception {
        Training training = SteadyTraining.on(folder.resolve("text"));
        List<String> command =
                List.of("train", training.configuration().toString(), "--seed", address(seed));
        String[] all =
                Stream.concat(training.settings().stream(), Arrays.stream(settings))
                        .toArray(String[]::new);
        return ForkedCli.start(command, all);
    }

    private static String address(ForkedCli seed) {
        return seed.awaitOutput("listens on (\\S+)");
    }

    private static JsonNode runs(ForkedCli seed) throws Exception {
        Cli runs = Cli.run("runs", "--json", "--seed", address(seed));
        assertThat(runs.exitCode()).as(runs.err()).isZero();
        return new ObjectMapper().readTree(runs.out());
    }
}
