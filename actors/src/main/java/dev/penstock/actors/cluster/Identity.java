package dev.penstock.actors.cluster;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * What two processes must have in common to work together, and who they are.
 *
 * @param clusterId name of the cluster, so that nobody joins another's by mistake
 * @param protocol what messages mean; raised by hand
 * @param registry what messages look like: {@link
 *     dev.penstock.actors.serialization.KryoRegistry#fingerprint}
 * @param process for people: name, version, place
 */
public record Identity(String clusterId, int protocol, String registry, String process) {
    /** What messages mean in this version. */
    public static final int PROTOCOL = 2;

    /** Keys below {@code penstock.identity} in a node's configuration. */
    static final String CLUSTER_ID = "cluster-id";

    static final String PROTOCOL_KEY = "protocol";
    static final String REGISTRY = "registry";
    static final String PROCESS = "process";

    /** By key. */
    public Map<String, String> facts() {
        Map<String, String> facts = new LinkedHashMap<>();
        facts.put(CLUSTER_ID, clusterId);
        facts.put(PROTOCOL_KEY, "" + protocol);
        facts.put(REGISTRY, registry);
        facts.put(PROCESS, process);
        return facts;
    }

    static Identity of(Map<String, String> facts) {
        String protocol = facts.getOrDefault(PROTOCOL_KEY, "");
        return new Identity(
                facts.getOrDefault(CLUSTER_ID, "?"),
                protocol.matches("\\d{1,9}") ? Integer.parseInt(protocol) : -1,
                facts.getOrDefault(REGISTRY, "?"),
                facts.getOrDefault(PROCESS, "a process that does not say who it is"));
    }

    /** Why this process and another cannot work together; names both. Empty if they can. */
    public Optional<String> differenceFrom(Identity other) {
        List<String> differences = new ArrayList<>();
        compare(differences, "cluster-id", clusterId, other.clusterId);
        compare(differences, "protocol version", "" + protocol, "" + other.protocol);
        compare(differences, "message registry", registry, other.registry);
        return differences.isEmpty()
                ? Optional.empty()
                : Optional.of(
                        "%s and %s cannot work together: %s; use the same version and cluster.cluster-id everywhere"
                                .formatted(process, other.process, String.join(", ", differences)));
    }

    private static void compare(List<String> into, String what, String here, String there) {
        if (!here.equals(there)) {
            into.add("%s %s here, %s there".formatted(what, here, there));
        }
    }
}
