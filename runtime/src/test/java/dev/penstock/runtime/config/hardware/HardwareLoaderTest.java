package dev.penstock.runtime.config.hardware;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.penstock.runtime.config.reading.Bytes;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.schedules.plan.work.Hardware;
import dev.penstock.schedules.plan.work.TrainingBytes;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class HardwareLoaderTest {
    private static final String LEAST =
            "nodes = [ { name = a, memory = 8 GiB, peak-tflops = 1, memory-bandwidth = 20 GB } ]\n";

    @TempDir Path folder;

    static List<Path> samples() throws IOException {
        try (Stream<Path> files = Files.list(Path.of("..", "sample-configs", "hardware"))) {
            return files.sorted().toList();
        }
    }

    @ParameterizedTest
    @MethodSource("samples")
    void everySampleLoads(Path sample) {
        Hardware cluster = HardwareLoader.load(sample).cluster();

        String name = String.valueOf(sample.getFileName());
        int devices = name.startsWith("48x8") ? 384 : name.startsWith("3072") ? 3072 : 4;
        assertThat(cluster.devices()).isEqualTo(devices);
    }

    private HardwareConfig load(String text) throws IOException {
        return HardwareLoader.load(Files.writeString(folder.resolve("my-cluster.conf"), text));
    }

    private List<Problem> problems(String text) throws IOException {
        Path file = Files.writeString(folder.resolve("my-cluster.conf"), text);
        ConfigException e =
                catchThrowableOfType(ConfigException.class, () -> HardwareLoader.load(file));
        return e.problems();
    }

    @Test
    void whatIsNotWrittenHasADefault() throws IOException {
        HardwareConfig config = load(LEAST);

        assertThat(config)
                .isEqualTo(
                        new HardwareConfig(
                                "my-cluster",
                                List.of(
                                        new NodesSection(
                                                "a",
                                                1,
                                                1,
                                                new Bytes(8L << 30),
                                                new Bytes(0),
                                                1.0,
                                                0.5,
                                                new Bytes(20_000_000_000L),
                                                new Bytes(4_000_000_000L),
                                                new Bytes(1_000_000_000L),
                                                new Bytes(16_000_000_000L),
                                                Duration.ofNanos(5_000))),
                                new NetworkSection(
                                        new Bytes(1_250_000_000), Duration.ofNanos(30_000)),
                                new TrainingBytesSection(2, 2, 12, 2)));
        assertThat(config.trainingBytes()).isEqualTo(TrainingBytes.MIXED);
    }

    @Test
    void everyKeyIsRead() throws IOException {
        HardwareConfig config =
                load(
                        """
                        name = "two kinds"
                        nodes = [
                          { name = a, count = 2, devices = 4, memory = 10 GiB, reserved = 1 GiB,
                            peak-tflops = 3, achieved = 0.25, memory-bandwidth = 7 GB,
                            link-bandwidth = 6 GB, link-latency = 4 us }
                          { name = b, memory = 1 GiB, peak-tflops = 1, memory-bandwidth = 1 GB }
                        ]
                        network { bandwidth = 2 GB, latency = 9 us }
                        bytes { parameter = 1, gradient = 3, optimizer = 5, activation = 7 }
                        """);
        Hardware cluster = config.cluster();

        assertThat(cluster.name()).isEqualTo("two kinds");
        assertThat(cluster.devices()).isEqualTo(9);
        assertThat(cluster.groups().getFirst().device().memoryBytes()).isEqualTo(9L << 30);
        assertThat(cluster.groups().getFirst().device().flopsPerSecond()).isEqualTo(0.75e12);
        assertThat(cluster.groups().getFirst().device().bytesPerSecond()).isEqualTo(7e9);
        assertThat(cluster.groups().getFirst().inside().bytesPerSecond()).isEqualTo(6e9);
        assertThat(cluster.groups().getFirst().inside().latencyNanos()).isEqualTo(4_000);
        assertThat(cluster.network().latencyNanos()).isEqualTo(9_000);
        assertThat(cluster.network().bytesPerSecond()).isEqualTo(2e9);
        assertThat(config.trainingBytes()).isEqualTo(new TrainingBytes(1, 3, 5, 7));
    }

    @Test
    void everythingThatIsWrongIsSaidAtOnceWithLineAndKey() throws IOException {
        List<Problem> problems =
                problems(
                        """
                        nodes = [
                          { name = a, memory = 8 GiB, peak-tflops = 1, memory-bandwith = 20 GB }
                          { name = b, memory = lots, peak-tflops = -1, memory-bandwidth = 1 GB }
                          { name = c, memory = 1 GiB, reserved = 2 GiB, peak-tflops = 1,
                            memory-bandwidth = 1 GB }
                          7
                        ]
                        networks { bandwidth = 1 GB }
                        bytes = 4
                        """);

        assertThat(problems)
                .extracting(problem -> problem.line() + " " + problem.key())
                .contains(
                        "2 nodes[0].memory-bandwith",
                        "2 nodes[0].memory-bandwidth",
                        "3 nodes[1].memory",
                        "3 nodes[1].peak-tflops",
                        "4 nodes[2].reserved",
                        "6 nodes[3]",
                        "8 networks",
                        "9 bytes")
                .hasSize(8);
        assertThat(problems)
                .extracting(Problem::advice)
                .contains("did you mean memory-bandwidth?", "did you mean network?");
    }

    @Test
    void aClusterNeedsNodes() throws IOException {
        assertThat(problems("name = x").getFirst().toString())
                .contains("my-cluster.conf", "nodes", "a list of nodes");
        assertThat(problems("nodes = []").getFirst().toString()).contains("nodes");
        assertThat(problems("nodes = [").getFirst().toString()).contains("my-cluster.conf");
        assertThat(problems(LEAST + "network { latency = ${nothing} }").getFirst().toString())
                .contains("my-cluster.conf:2", "${nothing}");
    }

    @Test
    void aMissingFileIsSaid() {
        ConfigException e =
                catchThrowableOfType(
                        ConfigException.class,
                        () -> HardwareLoader.load(folder.resolve("nowhere.conf")));

        assertThat(e.problems()).hasSize(1);
        assertThat(e.getMessage()).contains("nowhere.conf");
    }
}
