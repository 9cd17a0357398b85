package dev.penstock.systemtests.cluster;

import static dev.penstock.systemtests.support.TestCluster.address;
import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.systemtests.support.CalmRuns;
import dev.penstock.systemtests.support.ForkedCli;
import dev.penstock.systemtests.support.HostedCli;
import dev.penstock.systemtests.support.RunningCli;
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
import org.junit.jupiter.api.io.TempDir;

/**
 * One run over several hosts. Nodes with different host-ids share no memory: each has a media
 * driver, and tensors between them travel over UDP.
 */
@Tag("plain-code")
@Timeout(value = 5, unit = TimeUnit.MINUTES)
class HostsIT {
    private static final Duration PATIENCE = Duration.ofSeconds(120);

    @TempDir Path folder;

    private TestCluster cluster;

    @BeforeEach
    void layOut() {
        cluster = new TestCluster(folder, PATIENCE);
    }

    @Test
    void twoHostsTrainWithTheBitsOfOneProcessInSealedFrames() throws Exception {
        CalmRuns.CalmRun alone = CalmRuns.onText(ForkedCli.PLAIN_CODE);
        Path configuration = Training.onText(folder.resolve("text")).configuration();
        Path certs = folder.resolve("certs");
        assertThat(Cli.run("certs", "init", certs.toString(), "--nodes", "127.0.0.1").exitCode())
                .isZero();
        String[] tls = {
            "cluster.tls.certificate=\"" + certs.resolve("127.0.0.1.pem") + "\"",
            "cluster.tls.key=\"" + certs.resolve("127.0.0.1.key") + "\"",
            "cluster.tls.authority=\"" + certs.resolve("ca.pem") + "\""
        };
        try (HostedCli seed = cluster.seed(tls);
                HostedCli _ = worker(seed, "east", tls);
                HostedCli _ = worker(seed, "west", tls);
                HostedCli train =
                        HostedCli.start(
                                List.of(
                                        "train",
                                        configuration.toString(),
                                        "--cluster",
                                        address(seed),
                                        "--certificate",
                                        certs.resolve("127.0.0.1.pem").toString()),
                                ForkedCli.PLAIN_CODE,
                                "pipeline.ranks-per-node=1")) {
            assertThat(train.awaitEnd(PATIENCE)).as(train.output()).isZero();
            assertThat(train.output())
                    .contains(
                            "tensors between its 2 hosts travel over UDP, sealed with the run's"
                                    + " key");
            Path run = folder.resolve("runs/tiny-1");
            assertThat(Trained.lossBits(run)).isEqualTo(alone.lossBits());
            assertThat(new Trained(run, 0, "", "").validationBits())
                    .isEqualTo(alone.validationBits());
        }
    }

    /** A host dies, and no process on it can report that; a third host has room. */
    @Test
    void theRanksOfADeadHostContinueOnAThirdHost() throws Exception {
        try (HostedCli seed = cluster.seed();
                HostedCli east = worker(seed, "east");
                ForkedCli west = workerProcess(seed, "west")) {
            east.awaitOutput("joined");
            west.awaitOutput("joined");
            try (HostedCli train =
                    cluster.trainSteadily(List.of(address(seed)), "pipeline.ranks-per-node=1")) {
                cluster.awaitSteps(10);
                try (HostedCli north = worker(seed, "north")) {
                    north.awaitOutput("joined");
                    west.signal("KILL");
                    train.awaitOutput("recovered: ");
                    cluster.stopAfterMoreSteps(address(seed), train);
                }
            }
        }

        cluster.expectTheBitsOfACalmRun();
        assertThat(cluster.run().recoveries()).hasSize(1);
    }

    /**
     * The other host learnt the address only once, so the new driver has to listen where the first
     * did.
     */
    @Test
    void aHostsMediaDriverDiesAndTheOtherHostStillReachesTheHost() throws Exception {
        try (HostedCli seed = cluster.seed();
                HostedCli east = worker(seed, "east");
                HostedCli west = worker(seed, "west")) {
            east.awaitOutput("joined");
            west.awaitOutput("joined");
            try (HostedCli train =
                    cluster.trainSteadily(List.of(address(seed)), "pipeline.ranks-per-node=1")) {
                cluster.awaitSteps(10);
                List<ProcessHandle> drivers = TestCluster.hostedDrivers();
                assertThat(drivers).as("one of each host").hasSize(2);
                for (ProcessHandle driver : drivers) {
                    driver.destroyForcibly();
                    cluster.awaitRecoveries(drivers.indexOf(driver) + 1);
                }
                cluster.stopAfterMoreSteps(address(seed), train);
            }
        }

        cluster.expectTheBitsOfACalmRun();
        assertThat(cluster.run().recoveries())
                .hasSize(2)
                .allSatisfy(
                        recovery -> {
                            assertThat(recovery.get("cause").asText()).contains("media driver");
                            assertThat(recovery.get("stepsLost").asLong()).isZero();
                        });
    }

    @Test
    void aRunThatNeedsSharedMemoryWaitsForRoomOnOneHost() throws Exception {
        Path configuration = Training.onText(folder.resolve("text")).configuration();
        try (HostedCli seed = cluster.seed();
                HostedCli _ = worker(seed, "east");
                HostedCli _ = worker(seed, "west");
                HostedCli train =
                        TestCluster.train(
                                seed,
                                configuration,
                                "pipeline.ranks-per-node=1",
                                "data-plane.transport=ipc")) {
            train.awaitOutput("waits for 1 more node with .* on one host");
            train.interrupt();
            assertThat(train.awaitEnd(PATIENCE)).isEqualTo(ExitCode.INTERRUPTED);
            Cli exposed =
                    Cli.run(
                            "train",
                            configuration.toString(),
                            "--cluster",
                            address(seed),
                            "--set",
                            "data-plane.host=\"0.0.0.0\"");

            assertThat(exposed.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
            assertThat(exposed.err())
                    .contains("data-plane.host")
                    .contains("0.0.0.0, which other machines can reach")
                    .contains("cluster.insecure = true");
        }
    }

    private static HostedCli worker(RunningCli seed, String host, String... settings)
            throws Exception {
        return TestCluster.worker(seed, on(host, settings));
    }

    private static ForkedCli workerProcess(RunningCli seed, String host) throws Exception {
        return TestCluster.plainWorkerProcess(seed, on(host));
    }

    private static String[] on(String host, String... settings) {
        List<String> all = new ArrayList<>(List.of(settings));
        all.add("cluster.host-id=" + host);
        return all.toArray(String[]::new);
    }
}
