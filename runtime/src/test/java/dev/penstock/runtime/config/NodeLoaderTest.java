package dev.penstock.runtime.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

class NodeLoaderTest {
    private static final Path SAMPLES = Path.of("..", "sample-configs", "cluster");

    @TempDir Path folder;

    static List<Path> samples() throws IOException {
        try (Stream<Path> files = Files.list(SAMPLES)) {
            return files.sorted().toList();
        }
    }

    @ParameterizedTest
    @MethodSource("samples")
    void everySampleLoads(Path sample) {
        assertThat(NodeLoader.load(sample, List.of()).cluster().clusterId()).isEqualTo("penstock");
    }

    @Test
    void thereAreDefaultsForAll() throws IOException {
        NodeConfig config = load("cluster.seeds = [\"a:1\"]");

        assertThat(config)
                .isEqualTo(
                        new NodeConfig(
                                new ClusterSection(
                                        "penstock",
                                        ClusterSection.Role.WORKER,
                                        Optional.empty(),
                                        "127.0.0.1",
                                        0,
                                        Optional.empty(),
                                        Optional.empty(),
                                        Optional.empty(),
                                        List.of("a:1"),
                                        false,
                                        Optional.empty(),
                                        Path.of("runs")),
                                new TlsSection(
                                        Optional.empty(), Optional.empty(), Optional.empty())));
        assertThat(config.host()).isEqualTo("127.0.0.1");
        assertThat(config.dataHost()).isEqualTo("127.0.0.1");
        assertThat(config.advertisedDataHost()).isEqualTo("127.0.0.1");
        assertThat(config.isSecured()).isFalse();
    }

    @Test
    void everyKeyCanBeSet() throws IOException {
        Path pem = Files.writeString(folder.resolve("a.pem"), "");

        NodeConfig config =
                load(
                        """
                        cluster {
                          cluster-id = blue, role = both, name = n1, bind = "0.0.0.0", port = 7
                          advertise = "10.0.0.1", seeds = ["a:1", "b:2"], insecure = true
                          data-host = "0.0.0.0", host-id = rack-1
                          memory = 3 GiB, runs = "/shared"
                          tls { certificate = a.pem, key = a.pem, authority = a.pem }
                        }
                        """);

        assertThat(config)
                .isEqualTo(
                        new NodeConfig(
                                new ClusterSection(
                                        "blue",
                                        ClusterSection.Role.BOTH,
                                        Optional.of("n1"),
                                        "0.0.0.0",
                                        7,
                                        Optional.of("10.0.0.1"),
                                        Optional.of("0.0.0.0"),
                                        Optional.of("rack-1"),
                                        List.of("a:1", "b:2"),
                                        true,
                                        Optional.of(new Bytes(3L << 30)),
                                        Path.of("/shared")),
                                new TlsSection(
                                        Optional.of(pem), Optional.of(pem), Optional.of(pem))));
        assertThat(config.host()).isEqualTo("10.0.0.1");
        assertThat(config.dataHost()).isEqualTo("0.0.0.0");
        assertThat(config.advertisedDataHost()).isEqualTo("10.0.0.1");
        assertThat(config.isSecured()).isTrue();
        assertThat(config.tls().isOn()).isTrue();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            textBlock =
                    """
                    cluster { role = seed, bind = "192.0.2.1" }       | cluster.bind | or TLS
                    cluster { role = seed, bind = "192.0.2.1" }       | cluster.bind | cluster.insecure = true
                    cluster { role = seed, data-host = "192.0.2.1" }  | cluster.data-host | or TLS
                    cluster { role = seed, bind = "0.0.0.0", insecure = true } | cluster.advertise | add cluster.advertise
                    cluster { role = worker }                         | cluster.seeds | --seed host:port
                    cluster { seeds = ["nowhere"] }                   | cluster.seeds | "nowhere"
                    cluster { seeds = ["a:99999"] }                   | cluster.seeds | host:port
                    cluster { role = king }                           | cluster.role | one of seed, worker, both
                    cluster { sedes = [] }                            | cluster.sedes | did you mean seeds?
                    cluster { role = seed, tls { key = a.pem } }      | cluster.tls | give all three
                    cluster { role = seed, tls { key = no.pem } }     | cluster.tls.key | nothing readable
                    model.width = 3                                   | model | section cluster
                    """)
    void whatIsWrongIsSaidAtItsKey(String text, String key, String words) throws IOException {
        Files.writeString(folder.resolve("a.pem"), "");

        assertThatThrownBy(() -> load(text))
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining(key)
                .hasMessageContaining(words);
    }

    @Test
    void anAddressThatOthersReachIsFineWhereThatIsWanted() throws IOException {
        assertThat(
                        load("cluster { role = seed, bind = \"192.0.2.1\", insecure = true }")
                                .cluster()
                                .insecure())
                .isTrue();
    }

    private NodeConfig load(String text) throws IOException {
        return NodeLoader.load(Files.writeString(folder.resolve("node.conf"), text), List.of());
    }
}
