package dev.penstock.systemtests.cluster;

import static dev.penstock.systemtests.support.ForkedCluster.address;
import static dev.penstock.systemtests.support.ForkedCluster.freePort;
import static dev.penstock.systemtests.support.ForkedCluster.worker;
import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.systemtests.support.ForkedCli;
import dev.penstock.systemtests.support.ForkedCluster;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/**
 * The seed that manages a run leaves, or dies by kill -9, in the middle of it: the run continues.
 */
@EnabledOnOs(OS.LINUX)
@Timeout(value = 4, unit = TimeUnit.MINUTES)
class KilledSeedIT {
    private static final Duration PATIENCE = Duration.ofSeconds(100);

    @TempDir Path folder;

    private ForkedCluster cluster;

    @BeforeEach
    void layOut() {
        cluster = new ForkedCluster(folder, PATIENCE);
    }

    @Test
    void theNextOldestSeedTakesOverTheRunWhetherASeedLeavesOrDies() throws Exception {
        try (ForkedCli first = seed("one", freePort());
                ForkedCli second = joined(seed("two", freePort(), address(first)));
                ForkedCli third = seed("three", freePort(), address(first));
                ForkedCli worker =
                        worker(List.of(address(first), address(second), address(third)))) {
            third.awaitOutput("joined");
            worker.awaitOutput("joined");
            try (ForkedCli train =
                    cluster.trainSteadily(
                            List.of(address(first), address(second), address(third)))) {
                cluster.awaitSteps(10);
                first.signal("TERM"); // an orderly stop: the cluster does not have to detect it
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
        try (ForkedCli seed = seed("only", port);
                ForkedCli worker = worker(seed)) {
            worker.awaitOutput("joined");
            try (ForkedCli train = cluster.trainSteadily(List.of(address(seed)))) {
                cluster.awaitSteps(10);
                seed.signal("KILL");
                assertThat(seed.awaitEnd(PATIENCE)).isNotZero();
                try (ForkedCli again = seed("only", port)) {
                    awaitTakeOver();
                    cluster.stopAfterMoreSteps(address(again), train);
                }
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

    private ForkedCli seed(String name, int port, String... others) throws Exception {
        return ForkedCli.start(
                ForkedCluster.withSeeds(
                        List.of("node", "../sample-configs/cluster/seed.conf"), List.of(others)),
                "cluster.name=" + name,
                "cluster.port=" + port,
                "cluster.runs=\"" + folder.resolve("runs") + "\"");
    }
}
