package dev.penstock.runtime.cli.cluster;

import dev.penstock.runtime.certificates.NodeFiles;
import dev.penstock.runtime.cluster.ClusterClient;
import dev.penstock.runtime.config.node.NodeLoader;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** Where a cluster is. */
public final class ClusterArguments {
    @Option(
            names = "--cluster",
            paramLabel = "HOST:PORT",
            description =
                    "A seed node of the cluster; may be repeated, for when the first is gone.")
    private List<String> seeds = new ArrayList<>();

    @Option(names = "--seed", hidden = true, description = "The former name of --cluster.")
    private List<String> formerSeeds = new ArrayList<>();

    @Option(
            names = "--insecure",
            description =
                    "Talk to a seed on another machine without TLS: only where all are trusted.")
    private boolean insecure;

    @Option(
            names = "--certificate",
            paramLabel = "PEM",
            description =
                    "This client's certificate where the cluster has TLS; its key and ca.pem lie beside it.")
    private @Nullable Path certificate;

    /**
     * The same of a command that has options of its own for it.
     *
     * @param certificate null where the cluster has no TLS
     */
    public static ClusterArguments of(
            List<String> seeds, boolean insecure, @Nullable Path certificate) {
        var arguments = new ClusterArguments();
        arguments.seeds = List.copyOf(seeds);
        arguments.insecure = insecure;
        arguments.certificate = certificate;
        return arguments;
    }

    public boolean isGiven() {
        return !seeds().isEmpty();
    }

    List<String> seeds() {
        return Stream.concat(seeds.stream(), formerSeeds.stream()).toList();
    }

    /**
     * Finds a seed that answers; the caller closes.
     *
     * @throws ConfigException if what was given is no address
     */
    ClusterClient connect() {
        List<Problem> problems = new ArrayList<>();
        List<String> seeds = seeds();
        if (seeds.isEmpty()) {
            problems.add(problem("nothing"));
        }
        for (String seed : seeds) {
            if (!NodeLoader.isHostAndPort(seed)) {
                problems.add(problem('"' + seed + '"'));
            }
        }
        if (!problems.isEmpty()) {
            throw new ConfigException(problems);
        }
        return ClusterClient.connect(
                seeds, insecure, Optional.ofNullable(certificate).map(NodeFiles::beside));
    }

    private static Problem problem(String got) {
        return Problem.atOption(
                "--cluster",
                "host:port of a seed node",
                got,
                "write for example --cluster 127.0.0.1:2551");
    }
}
