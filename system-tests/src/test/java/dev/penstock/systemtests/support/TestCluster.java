package dev.penstock.systemtests.support;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Seeds, workers and clients of a cluster, and the one run that they work on. Those that a test
 * kills, or sends any other signal, are processes of their own; the others share the test's JVM.
 *
 * @param folder for all files
 * @param patience for everything a test waits for
 */
public record TestCluster(Path folder, Duration patience) {
    private static final AtomicInteger HOSTED = new AtomicInteger();
    private static final String RUN = "tiny-1";
    private static final int FIRST_PORT = 12_000;
    private static final int PORTS = 20_000;

    // ---- nodes and clients ------------------------------------------------------------------

    /** Starts a seed of its own JVM on a free port, unless the settings name one. */
    public ForkedCli seedProcess(String... settings) throws Exception {
        return ForkedCli.startLight(aSeed(), settings);
    }

    /** Starts a seed on a free port, unless the settings name one. */
    public HostedCli seed(String... settings) throws Exception {
        return HostedCli.start(named("seed", aSeed()), settings);
    }

    private List<String> aSeed() {
        return List.of(
                "node",
                "../sample-configs/cluster/seed.conf",
                "--set",
                "cluster.port=0",
                "--set",
                "cluster.runs=\"" + folder.resolve("runs") + "\"");
    }

    public static ForkedCli workerProcess(RunningCli seed, String... settings) throws Exception {
        return ForkedCli.start(aWorker(List.of(address(seed))), settings);
    }

    /** One that computes with plain code, as steady trainings do. */
    public static ForkedCli plainWorkerProcess(RunningCli seed, String... settings)
            throws Exception {
        return ForkedCli.startLight(aWorker(List.of(address(seed))), settings);
    }

    public static HostedCli worker(RunningCli seed, String... settings) throws Exception {
        return worker(List.of(address(seed)), settings);
    }

    public static HostedCli worker(List<String> seeds, String... settings) throws Exception {
        return HostedCli.start(named("worker", aWorker(seeds)), settings);
    }

    private static List<String> aWorker(List<String> seeds) {
        return withSeeds(List.of("node", "../sample-configs/cluster/worker.conf"), seeds);
    }

    /** The media drivers that nodes of this JVM have started: one for each of their hosts. */
    public static List<ProcessHandle> hostedDrivers() {
        return ProcessHandle.current()
                .children()
                .filter(child -> child.info().commandLine().orElse("").contains("MediaDriverMain"))
                .toList();
    }

    /** Nodes are named after their processes: those of one JVM would all have the same name. */
    public static List<String> named(String role, List<String> node) {
        return ForkedCli.withSettings(
                node, "cluster.name=" + role + "-" + HOSTED.incrementAndGet());
    }

    /** A client of its own JVM. */
    public static ForkedCli trainProcess(RunningCli seed, Path configuration, String... settings)
            throws Exception {
        return ForkedCli.startLight(training(configuration, List.of(address(seed))), settings);
    }

    public static HostedCli train(RunningCli seed, Path configuration, String... settings)
            throws Exception {
        return HostedCli.start(training(configuration, List.of(address(seed))), settings);
    }

    /** Starts a training that runs until it is stopped. */
    public HostedCli trainSteadily(List<String> seeds, String... settings) throws Exception {
        Training training = SteadyTraining.on(folder.resolve("text"));
        return HostedCli.start(
                training(training.configuration(), seeds),
                Stream.concat(training.settings().stream(), Stream.of(settings))
                        .toArray(String[]::new));
    }

    private static List<String> training(Path configuration, List<String> seeds) {
        return withSeeds(List.of("train", configuration.toString()), seeds);
    }

    public static List<String> withSeeds(List<String> command, List<String> seeds) {
        List<String> all = new ArrayList<>(command);
        seeds.forEach(seed -> all.addAll(List.of("--cluster", seed)));
        return all;
    }

    public static String address(RunningCli seed) {
        return seed.awaitOutput("listens on (\\S+)");
    }

    /**
     * Returns a port on which no process listens, and which no process gets that asks for any free
     * port: those are from 32768 on.
     */
    public static int freePort() throws Exception {
        for (int attempt = 0; attempt < PORTS; attempt++) {
            int port = FIRST_PORT + ThreadLocalRandom.current().nextInt(PORTS);
            try (ServerSocket _ = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
                return port;
            } catch (BindException e) {
                // the port is taken: try another one
            }
        }
        throw new IllegalStateException("no free port from " + FIRST_PORT + " on");
    }

    // ---- the run ----------------------------------------------------------------------------

    public static JsonNode runs(RunningCli seed) throws Exception {
        Cli runs = Cli.run("runs", "--json", "--cluster", address(seed));
        assertThat(runs.exitCode()).as(runs.err()).isZero();
        return new ObjectMapper().readTree(runs.out());
    }

    Path directory() {
        return folder.resolve("runs").resolve(RUN);
    }

    public Trained run() {
        return new Trained(directory(), 0, "", "");
    }

    public void awaitSteps(int steps) {
        await().atMost(patience)
                .pollInterval(Duration.ofMillis(50))
                .until(() -> Trained.steps(directory()) >= steps);
    }

    public void awaitRecoveries(int recoveries) {
        await().atMost(patience)
                .untilAsserted(
                        () ->
                                assertThat(run().recoveries())
                                        .as(this::whatHappened)
                                        .hasSizeGreaterThanOrEqualTo(recoveries));
    }

    /** What the run has noted, up to now. */
    private String whatHappened() {
        Path events = directory().resolve("events.jsonl");
        try {
            return Files.readAllLines(events).stream()
                    .filter(line -> !line.contains("\"type\":\"step\""))
                    .filter(line -> !line.contains("\"type\":\"leases\""))
                    .filter(line -> !line.contains("\"type\":\"ops\""))
                    .collect(Collectors.joining("\n"));
        } catch (IOException e) {
            return "" + e;
        }
    }

    /**
     * Waits for more steps, stops the run, and expects the client to have followed it to the end.
     */
    public void stopAfterMoreSteps(String seed, RunningCli train) throws Exception {
        awaitSteps(Trained.steps(directory()) + 5);
        Cli stop = Cli.run("stop", RUN, "--cluster", seed);
        assertThat(stop.exitCode()).as(stop.err()).isZero();
        assertThat(train.awaitEnd(patience)).as(train.output()).isEqualTo(ExitCode.INTERRUPTED);
    }

    public void expectTheBitsOfACalmRun(String... settings) {
        assertThat(run().lossBits()).isEqualTo(SteadyTraining.calmBits(run(), settings));
    }
}
