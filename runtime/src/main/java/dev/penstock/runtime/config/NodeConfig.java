package dev.penstock.runtime.config;

/** A node of a cluster as its file describes it. Made by {@link NodeLoader}. */
public record NodeConfig(ClusterSection cluster, TlsSection tls) {

    /** The address under which other nodes reach this one. */
    public String host() {
        return cluster.advertise().orElse(cluster.bind());
    }
}
