package dev.penstock.runtime.config.node;

import com.typesafe.config.ConfigObject;
import com.typesafe.config.ConfigOrigin;
import com.typesafe.config.ConfigRenderOptions;
import com.typesafe.config.ConfigValue;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problems;
import dev.penstock.runtime.config.run.SectionFile;
import dev.penstock.runtime.config.run.SectionReader;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/** Reads a node's file (HOCON), or says everything that is wrong with it. */
public final class NodeLoader {
    private static final String SECTION = "cluster";
    private static final String TLS = "tls";
    private static final String MANAGEMENT = "management";

    private final SectionFile file;
    private final Problems problems;
    private final SectionReader sections;

    private NodeLoader(Path path) {
        this.file = SectionFile.of(path);
        this.problems = file.problems();
        this.sections = file.sections();
    }

    /**
     * Reads a file.
     *
     * @param overrides {@code key=value}, later ones win over earlier ones and over the file
     * @throws ConfigException with all problems at once, each with its line and key
     */
    public static NodeConfig load(Path file, List<String> overrides) {
        return new NodeLoader(file).read(overrides);
    }

    private NodeConfig read(List<String> overrides) {
        ConfigObject written = file.read(overrides);
        written.forEach(this::known);
        ConfigObject all = object(written, SECTION, written.origin());
        Optional<TlsSection> tls =
                sections.read(
                        TlsSection.class,
                        SECTION + "." + TLS,
                        Optional.of(object(all, SECTION + "." + TLS, all.origin())),
                        all.origin());
        Optional<ClusterSection> cluster =
                sections.read(
                        ClusterSection.class,
                        SECTION,
                        Optional.of(all.withoutKey(TLS)),
                        all.origin());
        Optional<ManagementSection> management =
                sections.read(
                        ManagementSection.class,
                        MANAGEMENT,
                        Optional.of(object(written, MANAGEMENT, written.origin())),
                        written.origin());
        file.stopIfWrong();
        NodeConfig config =
                new NodeConfig(cluster.orElseThrow(), tls.orElseThrow(), management.orElseThrow());
        check(config, all);
        ManagementChecks.check(config, written, problems);
        file.stopIfWrong();
        return config;
    }

    private void known(String key, ConfigValue value) {
        if (!key.equals(SECTION) && !key.equals(MANAGEMENT)) {
            problems.at(
                    value.origin(),
                    key,
                    "the section cluster { .. } or management { .. } of a node's file",
                    "an unknown key",
                    "a run's configuration goes to penstock train; a node has"
                            + " sample-configs/cluster/worker.conf");
        }
    }

    private ConfigObject object(ConfigObject parent, String path, ConfigOrigin origin) {
        ConfigValue value = parent.get(path.substring(path.lastIndexOf('.') + 1));
        if (value instanceof ConfigObject object) {
            return object;
        }
        if (value != null) {
            problems.at(
                    value.origin(),
                    path,
                    "a section { .. }",
                    value.render(ConfigRenderOptions.concise()),
                    "put its keys in braces");
        }
        return com.typesafe.config.ConfigFactory.empty().root().withOrigin(origin);
    }

    private void check(NodeConfig config, ConfigObject written) {
        ClusterSection cluster = config.cluster();
        if (config.tls().isHalf()) {
            problem(
                    written,
                    TLS,
                    "certificate, key and authority",
                    "only some of them",
                    "give all three, or none");
        }
        requireSafe(config, written, "bind", cluster.bind());
        cluster.dataHost().ifPresent(host -> requireSafe(config, written, "data-host", host));
        for (String seed : cluster.seeds()) {
            if (!isHostAndPort(seed)) {
                problem(
                        written,
                        "seeds",
                        "host:port",
                        '"' + seed + '"',
                        "write for example 127.0.0.1:2551");
            }
        }
        if (cluster.seeds().isEmpty()
                && !cluster.role().keepsRuns()
                && !config.management().findsNodes()) {
            problem(
                    written,
                    "seeds",
                    "at least one seed to join",
                    "none",
                    "start with --cluster host:port");
        }
        if (cluster.advertise().isEmpty() && cluster.bind().equals("0.0.0.0")) {
            problem(
                    written,
                    "advertise",
                    "the address under which others reach this node",
                    "none, and it listens on all",
                    "add cluster.advertise");
        }
    }

    private void requireSafe(NodeConfig config, ConfigObject written, String key, String host) {
        Optional<Boolean> loopback = isLoopback(host);
        if (loopback.isEmpty()) {
            problem(written, key, "an address of this machine", host, "check it");
        } else if (!loopback.get() && !config.isSecured()) {
            problem(
                    written,
                    key,
                    "a loopback address such as 127.0.0.1, or TLS",
                    host + ", which other machines can reach",
                    "give cluster.tls its three files, or set cluster.insecure = true where"
                            + " everyone on that network is trusted");
        }
    }

    private void problem(
            ConfigObject written, String key, String expected, String got, String advice) {
        String path = SECTION + "." + key;
        ConfigValue value = written.get(key);
        if (value == null) {
            problems.inFile(path, expected, got, advice);
        } else {
            problems.at(value.origin(), path, expected, got, advice);
        }
    }

    private static Optional<Boolean> isLoopback(String address) {
        try {
            return Optional.of(InetAddress.getByName(address).isLoopbackAddress());
        } catch (UnknownHostException e) {
            return Optional.empty();
        }
    }

    /**
     * Whether a text is {@code host:port} with a port from 1 to 65535; an address with colons is
     * written {@code [::1]}.
     */
    public static boolean isHostAndPort(String text) {
        int colon = text.lastIndexOf(':');
        String port = text.substring(colon + 1);
        return colon > 0
                && text.substring(0, colon).matches("\\[[^\\[\\]]+]|[^:\\[\\]]+")
                && port.matches("\\d{1,5}")
                && Integer.parseInt(port) >= 1
                && Integer.parseInt(port) <= 65535;
    }
}
