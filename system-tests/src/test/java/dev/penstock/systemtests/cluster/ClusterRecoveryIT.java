package dev.penstock.systemtests.cluster;

import static dev.penstock.systemtests.support.TestCluster.address;
import static dev.penstock.systemtests.support.TestCluster.plainWorkerProcess;
import static dev.penstock.systemtests.support.TestCluster.runs;
import static dev.penstock.systemtests.support.TestCluster.worker;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.penstock.runtime.cli.Cli;
import dev.penstock.systemtests.support.ForkedCli;
import dev.penstock.systemtests.support.HostedCli;
import dev.penstock.systemtests.support.RunningCli;
import dev.penstock.systemtests.support.TestCluster;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/**
 * Nodes of a cluster die by kill -9 in the middle of a run: the run continues with the same losses.
 */
@Tag("plain-code")
@EnabledOnOs(OS.LINUX)
@Timeout(value = 5, unit = TimeUnit.MINUTES)
class ClusterRecoveryIT {
    private static final Duration PATIENCE = Duration.ofSeconds(120);

    @TempDir Path folder;

    private TestCluster cluster;

    @BeforeEach
    void layOut() {
        cluster = new TestCluster(folder, PATIENCE);
    }

    /**
     * First the spare node takes over the dead node's rank; after the second death none is left,
     * and after a while without room both ranks live on one node, until another joins.
     */
    @Test
    void aSpareNodeTakesOverAndWithoutOneTheRunGoesOnWithFewerUntilANodeJoins() throws Exception {
        try (HostedCli seed = cluster.seed();
                ForkedCli one = plainWorkerProcess(seed);
                ForkedCli two = plainWorkerProcess(seed)) {
            one.awaitOutput("joined");
            two.awaitOutput("joined");
            try (HostedCli train =
                    cluster.trainSteadily(
                            List.of(address(seed)),
                            "pipeline.ranks-per-node=1",
                            "recovery.rebalance-after=2 s")) {
                cluster.awaitSteps(10);
                ForkedCli owner = ownsDriver(one) ? one : two;
                ForkedCli other = owner == one ? two : one;
                try (HostedCli _ = worker(seed)) {
                    awaitNodes(seed, 3);
                    other.signal("KILL");
                    train.awaitOutput("recovered: ");

                    owner.signal("KILL");
                    train.awaitOutput("waits for 1 more node with .* at most 1 on a node");
                    train.awaitOutput("placed: ranks 0-1 on ");
                    cluster.awaitRecoveries(2);
                    try (HostedCli _ = worker(seed)) {
                        train.awaitOutput("rebalance: 1 rank goes to emptier nodes");
                        cluster.awaitRecoveries(3);
                        cluster.stopAfterMoreSteps(address(seed), train);
                    }
                }
            }
        }

        cluster.expectTheBitsOfACalmRun();
        assertThat(cluster.run().recoveries())
                .allSatisfy(
                        recovery ->
                                assertThat(recovery.get("restart").asText())
                                        .isEqualTo("checkpoint"));
    }

    /** The survivor has room for both ranks, and a mirror of the rank that it does not have. */
    @Test
    void aSurvivorTakesOverFromItsMirrorAndStartsAnotherDriver() throws Exception {
        try (HostedCli seed = cluster.seed();
                ForkedCli one = plainWorkerProcess(seed);
                ForkedCli two = plainWorkerProcess(seed)) {
            one.awaitOutput("joined");
            two.awaitOutput("joined");
            try (HostedCli train =
                    cluster.trainSteadily(List.of(address(seed)), "recovery.mirror=on")) {
                cluster.awaitSteps(10);
                ForkedCli owner = ownsDriver(one) ? one : two;
                driver(owner).destroyForcibly();
                train.awaitOutput("recovered: ");

                owner.signal("KILL");
                train.awaitOutput("placed: ranks 0-1 on ");
                cluster.awaitRecoveries(2);
                cluster.stopAfterMoreSteps(address(seed), train);
            }
        }

        cluster.expectTheBitsOfACalmRun();
        assertThat(cluster.run().recoveries())
                .extracting(recovery -> recovery.get("restart").asText())
                .containsExactly("memory", "mirror");
        assertThat(cluster.run().recoveries())
                .extracting(recovery -> recovery.get("stepsLost").asLong())
                .containsOnly(0L);
    }

    /** The node is out of the cluster when it wakes up, joins anew, and is as good as any other. */
    @Test
    void aSuspendedNodeRejoinsAndGetsARankAgain() throws Exception {
        try (HostedCli seed = cluster.seed();
                ForkedCli one = plainWorkerProcess(seed);
                ForkedCli two = plainWorkerProcess(seed)) {
            one.awaitOutput("joined");
            two.awaitOutput("joined");
            try (HostedCli train =
                    cluster.trainSteadily(
                            List.of(address(seed)),
                            "recovery.mirror=on",
                            "pipeline.ranks-per-node=1")) {
                cluster.awaitSteps(10);
                ForkedCli sleeper = ownsDriver(one) ? two : one;
                sleeper.signal("STOP");
                train.awaitOutput("placed: ranks 0-1 on ");
                seed.awaitOutput("is out of the cluster");
                awaitNodes(seed, 1);

                sleeper.signal("CONT");
                sleeper.awaitOutput("it starts anew and joins again");
                await().atMost(PATIENCE)
                        .untilAsserted(
                                () ->
                                        assertThat(runs(seed).get("nodes"))
                                                .as(sleeper::output)
                                                .hasSize(2));
                train.awaitOutput("1 rank goes to free nodes");
                cluster.awaitRecoveries(2);
                cluster.stopAfterMoreSteps(address(seed), train);
            }
        }

        cluster.expectTheBitsOfACalmRun();
        assertThat(cluster.run().recoveries())
                .extracting(recovery -> recovery.get("stepsLost").asLong())
                .containsOnly(0L);
    }

    /** No node dies: a rank moves between two steps, to a node that joined later. */
    @Test
    void rebalancingMovesARankToANewNodeWithoutLosingAStep() throws Exception {
        try (HostedCli seed = cluster.seed();
                HostedCli one = worker(seed)) {
            one.awaitOutput("joined");
            try (HostedCli train = cluster.trainSteadily(List.of(address(seed)))) {
                cluster.awaitSteps(10);
                assertThat(rebalance(seed)).contains("spread over all nodes that have room");
                try (HostedCli _ = worker(seed)) {
                    awaitNodes(seed, 2);
                    assertThat(rebalance(seed)).contains("1 rank goes to emptier nodes");
                    train.awaitOutput("recovered: ");
                    assertThat(runs(seed).at("/runs/0/nodes").asInt()).isEqualTo(2);
                    cluster.stopAfterMoreSteps(address(seed), train);
                }
            }
        }

        cluster.expectTheBitsOfACalmRun();
        assertThat(cluster.run().recoveries())
                .singleElement()
                .satisfies(recovery -> assertThat(recovery.get("stepsLost").asLong()).isZero());
    }

    private static String rebalance(RunningCli seed) throws Exception {
        Cli moved = Cli.run("rebalance", "tiny-1", "--cluster", address(seed));
        assertThat(moved.exitCode()).as(moved.err()).isZero();
        return moved.out();
    }

    private static void awaitNodes(RunningCli seed, int nodes) {
        await().atMost(PATIENCE).until(() -> runs(seed).get("nodes").size() == nodes);
    }

    // ---- processes --------------------------------------------------------------------------

    private static boolean ownsDriver(ForkedCli worker) {
        return !worker.descendants().isEmpty();
    }

    private static ProcessHandle driver(ForkedCli worker) {
        return worker.descendants().getFirst();
    }
}
