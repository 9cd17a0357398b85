package dev.penstock.runtime.config.node;

/** A node of a cluster as its file describes it. Made by {@link NodeLoader}. */
public record NodeConfig(ClusterSection cluster, TlsSection tls, ManagementSection management) {

    /** The address under which other nodes reach this one. */
    public String host() {
        return cluster.advertise().orElse(cluster.bind());
    }

    /** The address that tensors of other hosts come in at. */
    public String dataHost() {
        return cluster.dataHost().orElse(cluster.bind());
    }

    /** What other hosts send tensors to. */
    public String advertisedDataHost() {
        return cluster.dataHost().filter(host -> !isWildcard(host)).orElse(host());
    }

    /** Whether it may listen where other machines reach it. */
    public boolean isSecured() {
        return tls.isOn() || cluster.insecure();
    }

    private static boolean isWildcard(String address) {
        return address.equals("0.0.0.0") || address.equals("::");
    }
}
