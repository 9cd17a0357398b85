package dev.penstock.systemtests.cluster;

import static dev.penstock.systemtests.support.TestCluster.address;
import static dev.penstock.systemtests.support.TestCluster.freePort;
import static dev.penstock.systemtests.support.TestCluster.worker;
import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.systemtests.support.ForkedCli;
import dev.penstock.systemtests.support.HostedCli;
import dev.penstock.systemtests.support.TestCluster;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
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
 * The seed that manages a run leaves, or dies by kill -9, in the middle of it: the run continues.
 */
@Tag("plain-code")
@EnabledOnOs(OS.LINUX)
@Timeout(value = 4, unit = TimeUnit.MINUTES)
class KilledSeedIT {
    private static final Duration PATIENCE = Duration.ofSeconds(100);

    @TempDir Path folder;

    private TestCluster cluster;

    @BeforeEach
    void layOut() {
        cluster = new TestCluster(folder, PATIENCE);
    }

    @Test
    void theNextOldestSeedTakesOverTheRunWhetherASeedLeavesOrDies() throws Exception {
        try (HostedCli first = seed("one", freePort());
                ForkedCli second = joined(seedProcess("two", freePort(), address(first)));
                HostedCli third = seed("three", freePort(), address(first));
                HostedCli worker =
                        worker(List.of(address(first), address(second), address(third)))) {
            third.awaitOutput("joined");
            worker.awaitOutput("joined");
            try (HostedCli train =
                    cluster.trainSteadily(
                            List.of(address(first), address(second), address(third)))) {
                cluster.awaitSteps(10);
                first.interrupt(); // an orderly stop: the cluster does not have to detect it
                awaitTakeOver();
                assertThat(first.awaitEnd(PATIENCE)).as(first.output()).isZero();
                assertThat(first.output()).contains("another seed goes on with the runs");
                second.signal("KILL");
                cluster.awaitRecoveries(2);
                cluster.stopAfterMoreSteps(address(third), train);
            }
        }
        cluster.expectTheBitsOfACalmRun();
    }

    @Test
    void aRestartedSeedTakesOverItsRun() throws Exception {
        int port = freePort();
        try (ForkedCli seed = seedProcess("only", port);
                HostedCli worker = worker(seed)) {
            worker.awaitOutput("joined");
            try (HostedCli train = cluster.trainSteadily(List.of(address(seed)))) {
                cluster.awaitSteps(10);
                seed.signal("KILL");
                assertThat(seed.awaitEnd(PATIENCE)).isNotZero();
                try (HostedCli again = seed("only", port)) {
                    awaitTakeOver();
                    cluster.stopAfterMoreSteps(address(again), train);
                }
            }
        }
        cluster.expectTheBitsOfACalmRun();
    }

    /**
     * The others take it for dead, and it must not take them for dead when it goes on: there would
     * be two clusters, of which one had the run and the other the node for its ranks.
     */
    @Test
    void aSeedThatStoodStillJoinsTheOthersAgainWhoGoOnWithItsRun() throws Exception {
        try (ForkedCli first = joined(seedProcess("one", freePort()));
                HostedCli second = seed("two", freePort(), address(first));
                HostedCli worker = worker(List.of(address(first), address(second)))) {
            second.awaitOutput("joined");
            worker.awaitOutput("joined");
            try (HostedCli train =
                    cluster.trainSteadily(List.of(address(first), address(second)))) {
                cluster.awaitSteps(10);
                first.signal("STOP");
                second.awaitOutput(address(first) + " is out of the cluster");
                worker.awaitOutput(address(first) + " is out of the cluster");
                first.signal("CONT");
                first.awaitOutput("it starts anew and joins again");
                first.awaitOutput("joined the cluster: 2 seeds, 1 worker");
                awaitTakeOver();
                cluster.stopAfterMoreSteps(address(first), train);
            }
        }
        cluster.expectTheBitsOfACalmRun();
    }

    /**
     * Waits until a seed has joined: the one that joins first is the older one, and the older one
     * takes over.
     */
    private static ForkedCli joined(ForkedCli seed) throws Exception {
        seed.awaitOutput("joined");
        return seed;
    }

    private void awaitTakeOver() {
        cluster.awaitRecoveries(1);
        assertThat(cluster.run().recoveries().getFirst().get("cause").asText())
                .contains("the supervisor was gone");
    }

    private HostedCli seed(String name, int port, String... others) throws Exception {
        return cluster.seed(known(name, port, others));
    }

    private ForkedCli seedProcess(String name, int port, String... others) throws Exception {
        return cluster.seedProcess(known(name, port, others));
    }

    private static String[] known(String name, int port, String... others) {
        List<String> settings =
                new ArrayList<>(List.of("cluster.name=" + name, "cluster.port=" + port));
        if (others.length > 0) {
            settings.add("cluster.seeds=[\"" + String.join("\",\"", others) + "\"]");
        }
        return settings.toArray(String[]::new);
    }
}
