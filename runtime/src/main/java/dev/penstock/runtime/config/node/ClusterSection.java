package dev.penstock.runtime.config.node;

import dev.penstock.runtime.config.reading.Bytes;
import dev.penstock.runtime.config.reading.Setting;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/**
 * Section {@code cluster} of a node's file: how the node takes part in a cluster.
 *
 * @param clusterId nodes of another are refused
 * @param name for people; empty: made from host and process
 * @param bind address that the control plane listens on
 * @param port 0 for a free one
 * @param advertise address under which others reach this node; empty: {@code bind}
 * @param dataHost where tensors of other hosts come in; empty: {@code bind}
 * @param hostId of the memory that this node shares with others; empty: found out
 * @param seeds of the cluster, as {@code host:port}
 * @param size nodes that it has about
 * @param insecure allows an address that others reach without TLS
 * @param memory that ranks may hold here together; empty: most of what is free at the start
 * @param runs where a seed makes run directories
 */
public record ClusterSection(
        @Setting(is = "penstock", doc = "name of the cluster; nodes of another are refused")
                String clusterId,
        @Setting(is = "worker", doc = "a seed keeps the runs, a worker hosts ranks") Role role,
        @Setting(
                        is = "auto",
                        word = "auto",
                        doc = "what this node is called; auto: its host and process")
                Optional<String> name,
        @Setting(is = "127.0.0.1", doc = "address to listen on") String bind,
        @Setting(is = "0", range = "[0, 65535]", doc = "port to listen on; 0: a free one") int port,
        @Setting(is = "bind", word = "bind", doc = "address under which other nodes reach this one")
                Optional<String> advertise,
        @Setting(
                        is = "bind",
                        word = "bind",
                        doc = "address at which tensors of other hosts come in")
                Optional<String> dataHost,
        @Setting(
                        is = "auto",
                        word = "auto",
                        doc =
                                "nodes of equal ids exchange tensors through shared memory, others over UDP; auto: found out")
                Optional<String> hostId,
        @Setting(is = "[]", doc = "seeds of the cluster, each as host:port") List<String> seeds,
        @Setting(
                        is = "5",
                        range = "[1, 1000]",
                        doc =
                                "how many nodes the cluster has about: the more, the longer a silent one stays a member")
                int size,
        @Setting(is = "false", doc = "listen without TLS where other machines can reach it")
                boolean insecure,
        @Setting(
                        is = "auto",
                        word = "auto",
                        range = "[1 MiB, )",
                        doc =
                                "what ranks may hold here together; auto: four fifths of what is free")
                Optional<Bytes> memory,
        @Setting(
                        is = "runs",
                        output = true,
                        doc = "a seed's folder for run directories; all nodes must see it there")
                Path runs) {
    public ClusterSection {
        seeds = List.copyOf(seeds);
    }

    /** What a node does. */
    public enum Role {
        /** Keeps the runs; hosts no ranks, so that their death is none of it. */
        SEED,
        /** Hosts ranks. */
        WORKER,
        /** Both. */
        BOTH;

        public boolean keepsRuns() {
            return this != WORKER;
        }

        public boolean hostsRanks() {
            return this != SEED;
        }
    }
}
