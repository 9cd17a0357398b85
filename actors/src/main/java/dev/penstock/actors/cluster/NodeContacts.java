package dev.penstock.actors.cluster;

import akka.actor.typed.ActorRef;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** How the nodes of a cluster are reached, by address. Its owner's thread only. */
final class NodeContacts implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(NodeContacts.class);

    private final String host;
    private final ActorRef<ClusterNode.Introduction> introductions;
    private final Optional<HostWatch> lifeline;
    private final Map<String, ClusterNode.Introduction> nodes = new HashMap<>();

    /**
     * @param host of this process, as nodes say it
     * @param introductions told who nodes are
     * @param onCut told of a process of this host that ended; from any thread
     */
    NodeContacts(
            String host, ActorRef<ClusterNode.Introduction> introductions, Consumer<String> onCut) {
        this.host = host;
        this.introductions = introductions;
        this.lifeline = watch(onCut);
    }

    private static Optional<HostWatch> watch(Consumer<String> onCut) {
        try {
            return Optional.of(HostWatch.open(onCut));
        } catch (IOException e) {
            LOG.warn("deaths on this host are seen by their silence only", e);
            return Optional.empty();
        }
    }

    ClusterNode.Introduce question() {
        return new ClusterNode.Introduce(
                host, lifeline.map(HostWatch::address).orElse(""), introductions);
    }

    /** Those of all listed who have not said so are asked who they are. */
    void ask(Set<ActorRef<ClusterNode.Command>> listed) {
        Set<ActorRef<ClusterNode.Command>> known =
                nodes.values().stream()
                        .map(ClusterNode.Introduction::node)
                        .collect(Collectors.toSet());
        listed.stream()
                .filter(node -> !known.contains(node))
                .forEach(node -> node.tell(question()));
    }

    /** Whoever was at its address before; itself if it has said so before. */
    Optional<ClusterNode.Introduction> add(ClusterNode.Introduction node) {
        return Optional.ofNullable(nodes.put(node.offer().address(), node));
    }

    /** Whether it is the one at its address. */
    boolean has(ClusterNode.Introduction node) {
        return node.equals(nodes.get(node.offer().address()));
    }

    Optional<ClusterNode.Introduction> of(String process) {
        return nodes.values().stream()
                .filter(node -> node.offer().process().equals(process))
                .findFirst();
    }

    void remove(ClusterNode.Introduction node) {
        nodes.remove(node.offer().address());
    }

    /** Tells whoever is at this address, if anybody is. */
    void tell(String address, ClusterNode.Command command) {
        ClusterNode.@Nullable Introduction node = nodes.get(address);
        if (node != null) {
            node.node().tell(command);
        }
    }

    @Override
    public void close() {
        lifeline.ifPresent(HostWatch::close);
    }
}
