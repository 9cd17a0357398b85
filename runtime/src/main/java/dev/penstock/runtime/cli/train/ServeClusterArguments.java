package dev.penstock.runtime.cli.train;

import dev.penstock.runtime.cli.cluster.ClusterArguments;
import dev.penstock.runtime.cli.command.WholeNumber;
import dev.penstock.runtime.config.reading.Problem;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** Which cluster has the stages of a model that is served. */
final class ServeClusterArguments {
    @Option(
            names = "--cluster",
            paramLabel = "HOST:PORT",
            description =
                    "A seed node of a cluster whose nodes have the stages; may be repeated, for when"
                            + " the first is gone. --host and --port are then of the node with the"
                            + " first stage.")
    private List<String> seeds = new ArrayList<>();

    @Option(
            names = "--certificate",
            paramLabel = "PEM",
            description =
                    "This client's certificate where the cluster has TLS; its key and ca.pem lie"
                            + " beside it.")
    private @Nullable Path certificate;

    @Option(
            names = "--ranks-per-node",
            paramLabel = "N",
            description = "Most ranks on a node of the cluster (default: as many as fit).")
    @WholeNumber(from = 1)
    private @Nullable Integer ranksPerNode;

    @Option(
            names = "--data-plane-port",
            paramLabel = "PORT",
            defaultValue = "0",
            description =
                    "UDP port of tensors between the cluster's hosts; 0 takes any that is free"
                            + " (default: ${DEFAULT-VALUE}).")
    @WholeNumber(from = 0, to = 65_535)
    private int dataPort;

    boolean isGiven() {
        return !seeds.isEmpty();
    }

    /** What is wrong with these options. */
    void check(List<Problem> problems) {
        if (ranksPerNode != null && ranksPerNode < 1) {
            problems.add(Problem.atOption("--ranks-per-node", "1 or more", "" + ranksPerNode, ""));
        }
        if (dataPort < 0 || dataPort > 65_535) {
            problems.add(Problem.atOption("--data-plane-port", "0 to 65535", "" + dataPort, ""));
        }
        if (!isGiven() && (certificate != null || ranksPerNode != null || dataPort != 0)) {
            problems.add(
                    Problem.atOption(
                            "--cluster",
                            "a seed node, as --certificate, --ranks-per-node and"
                                    + " --data-plane-port are of a cluster",
                            "none",
                            "write for example --cluster 127.0.0.1:2551"));
        }
    }

    /**
     * Returns where the cluster is.
     *
     * @param insecure allows to talk to it without TLS
     */
    ClusterArguments seeds(boolean insecure) {
        return ClusterArguments.of(seeds, insecure, certificate);
    }

    Optional<Integer> ranksPerNode() {
        return Optional.ofNullable(ranksPerNode);
    }

    int dataPort() {
        return dataPort;
    }
}
