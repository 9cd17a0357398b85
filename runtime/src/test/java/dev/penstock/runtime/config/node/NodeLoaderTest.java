package dev.penstock.runtime.config.node;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.runtime.config.reading.Bytes;
import dev.penstock.runtime.config.reading.ConfigException;
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

    private static final ManagementSection NOTHING_LISTENS =
            new ManagementSection(
                    Optional.empty(),
                    "127.0.0.1",
                    Optional.empty(),
                    ManagementSection.Discovery.NONE,
                    "app=penstock,role=seed",
                    List.of(),
                    2);

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
                                        5,
                                        false,
                                        Optional.empty(),
                                        Path.of("runs")),
                                new TlsSection(
                                        Optional.empty(), Optional.empty(), Optional.empty()),
                                NOTHING_LISTENS));
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
                        management {
                          host = "0.0.0.0", port = 8558, advertise = "10.0.0.1"
                          service = seeds, contacts = ["a:1", "b:2"], required-contacts = 1
                          discovery = listed
                        }
                        cluster.seeds = []
                        cluster.size = 40
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
                                        List.of(),
                                        40,
                                        true,
                                        Optional.of(new Bytes(3L << 30)),
                                        Path.of("/shared")),
                                new TlsSection(
                                        Optional.of(pem), Optional.of(pem), Optional.of(pem)),
                                new ManagementSection(
                                        Optional.of(8558),
                                        "0.0.0.0",
                                        Optional.of("10.0.0.1"),
                                        ManagementSection.Discovery.LISTED,
                                        "seeds",
                                        List.of("a:1", "b:2"),
                                        1)));
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
                    cluster { role = worker }                         | cluster.seeds | --cluster host:port
                    cluster { seeds = ["nowhere"] }                   | cluster.seeds | "nowhere"
                    cluster { seeds = ["a:99999"] }                   | cluster.seeds | host:port
                    cluster { role = king }                           | cluster.role | one of seed, worker, both
                    cluster { sedes = [] }                            | cluster.sedes | did you mean seeds?
                    cluster { role = seed, tls { key = a.pem } }      | cluster.tls | give all three
                    cluster { role = seed, tls { key = no.pem } }     | cluster.tls.key | nothing readable
                    model.width = 3                                   | model | section cluster
                    cluster.role = seed, management { port = 1, host = "192.0.2.1" } | management.host | or TLS
                    cluster.role = seed, management.discovery = dns   | management.port | management.port = 8558
                    cluster.role = seed, management { port = 0, discovery = dns } | management.port | cannot know
                    cluster.seeds = ["a:1"], management { port = 1, discovery = dns } | management.discovery | remove cluster.seeds
                    cluster { role = seed, insecure = true }, management { port = 1, host = "0.0.0.0", discovery = dns } | management.advertise | listen on all
                    management { port = 1, discovery = listed }       | management.contacts | none
                    management { port = 1, discovery = listed, contacts = [a] } | management.contacts | host:port
                    management { port = 1, discovery = listed, contacts = ["a:1"] } | management.required-contacts | at most the 1
                    cluster.role = seed, management.contacts = ["a:1"] | management.contacts | management.discovery = listed
                    cluster.role = seed, management.port = 70000      | management.port | at most 65535
                    cluster.role = seed, management.discovery = consul | management.discovery | one of none, kubernetes, dns, listed
                    """)
    void whatIsWrongIsSaidAtItsKey(String text, String key, String words) throws IOException {
        Files.writeString(folder.resolve("a.pem"), "");

        assertThatThrownBy(() -> load(text))
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining(key)
                .hasMessageContaining(words);
    }

    @Test
    void aWorkerThatFindsNodesNeedsNoSeed() throws IOException {
        NodeConfig config = load("management { port = 8558, discovery = kubernetes }");

        assertThat(config.cluster().seeds()).isEmpty();
        assertThat(config.management().findsNodes()).isTrue();
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
