package dev.penstock.systemtests.cluster;

import static dev.penstock.systemtests.support.TestCluster.address;
import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.Training;
import dev.penstock.systemtests.support.ForkedCli;
import dev.penstock.systemtests.support.SteadyTraining;
import dev.penstock.systemtests.support.TestCluster;
import dev.penstock.systemtests.support.TwoNamespaces;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Two hosts in realistic conditions: addresses that are not loopback, TLS, no common memory, and a
 * cable that can be cut. Needs a machine that allows network namespaces; elsewhere it is skipped
 * with a message.
 */
@Tag("plain-code")
@Timeout(value = 5, unit = TimeUnit.MINUTES)
class NamespacesIT {
    private static final Logger LOG = LoggerFactory.getLogger(NamespacesIT.class);
    private static final Duration PATIENCE = Duration.ofSeconds(150);

    private static final String[] THREE_STAGES = {"model.layers=3", "pipeline.stages=3"};

    @TempDir Path folder;
    private @Nullable TwoNamespaces network;

    @BeforeEach
    void layTheCable() {
        try {
            network = new TwoNamespaces();
        } catch (UnsupportedOperationException e) {
            LOG.warn("SKIPPED, no network namespaces here: {}", e.getMessage());
            Assumptions.abort("no network namespaces here: " + e.getMessage());
        }
        Path certs = folder.resolve("certs");
        String nodes = TwoNamespaces.EAST + "," + TwoNamespaces.WEST;
        assertThat(Cli.run("certs", "init", certs.toString(), "--nodes", nodes).exitCode())
                .isZero();
    }

    private TwoNamespaces network() {
        return Objects.requireNonNull(network);
    }

    private String pem(String name) {
        return folder.resolve("certs").resolve(name).toString();
    }

    @AfterEach
    void takeItAway() {
        TwoNamespaces laid = network;
        if (laid != null) {
            laid.close();
        }
    }

    /**
     * They train with the bits of one process. Two of three ranks are on the seed's side: they
     * continue without the third, which stops.
     */
    @Test
    void twoHostsTrainAndOnlyTheMajorityContinuesWhenTheCableIsCut() throws Exception {
        Training training = SteadyTraining.on(folder.resolve("text")).set(THREE_STAGES);
        var cluster = new TestCluster(folder, PATIENCE);
        try (ForkedCli seed = seed();
                ForkedCli one = worker(TwoNamespaces.EAST, seed);
                ForkedCli two = worker(TwoNamespaces.EAST, seed);
                ForkedCli west = worker(TwoNamespaces.WEST, seed);
                ForkedCli train = trainWhenJoined(List.of(one, two, west), seed, training)) {
            train.awaitOutput("rank . on \\S+ \\(" + TwoNamespaces.WEST);
            train.awaitOutput("[23] hosts travel over UDP, sealed with the run's key");
            cluster.awaitSteps(30);

            network().cut();
            train.awaitOutput("recovered: ");
            int recovered = cluster.run().lossBits().size();
            west.awaitOutput("taken for dead and is out of the cluster");
            cluster.awaitSteps(recovered + 5);
            train.signal("INT"); // the client stops following
            seed.signal("TERM"); // the run finishes its step
            assertThat(seed.awaitEnd(PATIENCE)).as(seed.output()).isZero();
        }

        cluster.expectTheBitsOfACalmRun(THREE_STAGES);
        assertThat(cluster.run().recoveries()).hasSize(1);
    }

    /** Waits for all nodes first, since a run starts on the nodes that are there. */
    private ForkedCli trainWhenJoined(List<ForkedCli> workers, ForkedCli seed, Training training)
            throws Exception {
        workers.forEach(worker -> worker.awaitOutput("joined"));
        return train(seed, training.configuration(), training.settings().toArray(String[]::new));
    }

    // ---- processes --------------------------------------------------------------------------

    private ForkedCli seed() throws Exception {
        return ForkedCli.startLightWith(
                network().on(TwoNamespaces.EAST),
                List.of("node", "../sample-configs/cluster/seed.conf"),
                settings(TwoNamespaces.EAST, "cluster.runs=\"" + folder.resolve("runs") + "\""));
    }

    private ForkedCli worker(String host, ForkedCli seed) throws Exception {
        return ForkedCli.startLightWith(
                network().on(host),
                List.of(
                        "node",
                        "../sample-configs/cluster/worker.conf",
                        "--cluster",
                        address(seed)),
                settings(host));
    }

    private ForkedCli train(ForkedCli seed, Path configuration, String... settings)
            throws Exception {
        return ForkedCli.startLightWith(
                network().on(TwoNamespaces.EAST),
                List.of(
                        "train",
                        configuration.toString(),
                        "--cluster",
                        address(seed),
                        "--certificate",
                        pem(TwoNamespaces.EAST + ".pem")),
                settings);
    }

    private String[] settings(String host, String... more) {
        List<String> settings = new ArrayList<>(List.of(more));
        settings.add("cluster.port=0");
        settings.add("cluster.bind=\"" + host + "\"");
        settings.add("cluster.tls.certificate=\"" + pem(host + ".pem") + "\"");
        settings.add("cluster.tls.key=\"" + pem(host + ".key") + "\"");
        settings.add("cluster.tls.authority=\"" + pem("ca.pem") + "\"");
        return settings.toArray(String[]::new);
    }
}
