package dev.penstock.runtime.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/** The seed that keeps a run dies by kill -9 in the middle of it: the run goes on. */
@EnabledOnOs(OS.LINUX)
@Timeout(value = 4, unit = TimeUnit.MINUTES)
class KilledSeedIT {
    private static final Duration PATIENCE = Duration.ofSeconds(100);

    @TempDir Path folder;

    @Test
    void theNextOldestSeedTakesTheRunUp() throws Exception {
        try (ForkedCli first = seed("one", freePort());
                ForkedCli second = seed("two", freePort(), address(first));
                ForkedCli third = seed("three", freePort(), address(first));
                ForkedCli worker = worker(address(first), address(second))) {
            second.awaitOutput("joined");
            third.awaitOutput("joined");
            worker.awaitOutput("joined");
            try (ForkedCli train = train(address(first), address(second), address(third))) {
                awaitSteps(10);
                first.signal("KILL");
                awaitTakeOver();
                stopAfterMoreSteps(address(second), train);
            }
        }
        expectTheBitsOfACalmRun();
    }

    @Test
    void aSeedThatIsStartedAgainTakesItsRunUp() throws Exception {
        int port = freePort();
        try (ForkedCli seed = seed("only", port);
                ForkedCli worker = worker(address(seed))) {
            worker.awaitOutput("joined");
            try (ForkedCli train = train(address(seed))) {
                awaitSteps(10);
                seed.signal("KILL");
                assertThat(seed.awaitEnd(PATIENCE)).isNotZero();
                try (ForkedCli again = seed("only", port)) {
                    awaitTakeOver();
                    stopAfterMoreSteps(address(again), train);
                }
            }
        }
        expectTheBitsOfACalmRun();
    }

    private Trained run() {
        return new Trained(folder.resolve("runs/tiny-1"), 0, "", "");
    }

    private void awaitSteps(int steps) {
        await().atMost(PATIENCE)
                .pollInterval(Duration.ofMillis(20))
                .until(() -> run().lossBits().size() >= steps);
    }

    private void awaitTakeOver() {
        await().atMost(PATIENCE).until(() -> !run().recoveries().isEmpty());
        assertThat(run().recoveries().getFirst().get("cause").asText())
                .contains("the supervisor was gone");
    }

    /** The client has followed the run through it all. */
    private void stopAfterMoreSteps(String seed, ForkedCli train) throws Exception {
        awaitSteps(run().lossBits().size() + 5);
        Cli stop = Cli.run("stop", "tiny-1", "--seed", seed);
        assertThat(stop.exitCode()).as(stop.err()).isZero();
        assertThat(train.awaitEnd(PATIENCE)).as(train.output()).isEqualTo(ExitCode.INTERRUPTED);
    }

    private void expectTheBitsOfACalmRun() {
        assertThat(run().lossBits()).isEqualTo(SteadyTraining.calmBits(folder, run()));
    }

    // ---- processes --------------------------------------------------------------------------

    private ForkedCli seed(String name, int port, String... others) throws Exception {
        return ForkedCli.start(
                withSeeds(List.of("node", "../sample-configs/cluster/seed.conf"), others),
                "cluster.name=" + name,
                "cluster.port=" + port,
                "cluster.runs=\"" + folder.resolve("runs") + "\"");
    }

    private static ForkedCli worker(String... seeds) throws Exception {
        return ForkedCli.start(
                withSeeds(List.of("node", "../sample-configs/cluster/worker.conf"), seeds));
    }

    private ForkedCli train(String... seeds) throws Exception {
        Training training = SteadyTraining.on(folder.resolve("text"));
        return ForkedCli.start(
                withSeeds(List.of("train", training.configuration().toString()), seeds),
                training.settings().toArray(String[]::new));
    }

    private static List<String> withSeeds(List<String> command, String... seeds) {
        List<String> all = new ArrayList<>(command);
        Stream.of(seeds).forEach(seed -> all.addAll(List.of("--seed", seed)));
        return all;
    }

    private static int freePort() throws Exception {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    private static String address(ForkedCli seed) {
        return seed.awaitOutput("listens on (\\S+)");
    }
}
