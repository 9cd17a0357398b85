package dev.penstock.runtime.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/**
 * Seeds, workers and clients of a cluster, each in a Java machine of its own, and the one run that
 * they work on.
 *
 * @param folder where all files are
 * @param patience for whatever a test waits for
 */
record ForkedCluster(Path folder, Duration patience) {
    private static final String RUN = "tiny-1";

    // ---- processes --------------------------------------------------------------------------

    /** On a free port, unless the settings say another. */
    ForkedCli seed(String... settings) throws Exception {
        return ForkedCli.start(
                List.of(
                        "node",
                        "../sample-configs/cluster/seed.conf",
                        "--set",
                        "cluster.port=0",
                        "--set",
                        "cluster.runs=\"" + folder.resolve("runs") + "\""),
                settings);
    }

    static ForkedCli worker(ForkedCli seed, String... settings) throws Exception {
        return worker(List.of(address(seed)), settings);
    }

    static ForkedCli worker(List<String> seeds, String... settings) throws Exception {
        return ForkedCli.start(
                withSeeds(List.of("node", "../sample-configs/cluster/worker.conf"), seeds),
                settings);
    }

    static ForkedCli train(ForkedCli seed, Path configuration, String... settings)
            throws Exception {
        return ForkedCli.start(
                withSeeds(List.of("train", configuration.toString()), List.of(address(seed))),
                settings);
    }

    /** A training that goes on until it is stopped. */
    ForkedCli trainSteadily(List<String> seeds, String... settings) throws Exception {
        Training training = SteadyTraining.on(folder.resolve("text"));
        return ForkedCli.start(
                withSeeds(List.of("train", training.configuration().toString()), seeds),
                Stream.concat(training.settings().stream(), Stream.of(settings))
                        .toArray(String[]::new));
    }

    static List<String> withSeeds(List<String> command, List<String> seeds) {
        List<String> all = new ArrayList<>(command);
        seeds.forEach(seed -> all.addAll(List.of("--seed", seed)));
        return all;
    }

    static String address(ForkedCli seed) {
        return seed.awaitOutput("listens on (\\S+)");
    }

    static int freePort() throws Exception {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    // ---- the run ----------------------------------------------------------------------------

    static JsonNode runs(ForkedCli seed) throws Exception {
        Cli runs = Cli.run("runs", "--json", "--seed", address(seed));
        assertThat(runs.exitCode()).as(runs.err()).isZero();
        return new ObjectMapper().readTree(runs.out());
    }

    Path directory() {
        return folder.resolve("runs").resolve(RUN);
    }

    Trained run() {
        return new Trained(directory(), 0, "", "");
    }

    void awaitSteps(int steps) {
        await().atMost(patience)
                .pollInterval(Duration.ofMillis(20))
                .until(() -> Trained.lossBits(directory()).size() >= steps);
    }

    void awaitRecoveries(int recoveries) {
        await().atMost(patience).until(() -> run().recoveries().size() >= recoveries);
    }

    /** The client has followed the run through it all. */
    void stopAfterMoreSteps(String seed, ForkedCli train) throws Exception {
        awaitSteps(run().lossBits().size() + 5);
        Cli stop = Cli.run("stop", RUN, "--seed", seed);
        assertThat(stop.exitCode()).as(stop.err()).isZero();
        assertThat(train.awaitEnd(patience)).as(train.output()).isEqualTo(ExitCode.INTERRUPTED);
    }

    void expectTheBitsOfACalmRun(String... settings) {
        assertThat(run().lossBits())
                .isEqualTo(SteadyTraining.calmBits(folder.resolve("calm"), run(), settings));
    }
}
