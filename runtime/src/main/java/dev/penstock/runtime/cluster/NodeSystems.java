package dev.penstock.runtime.cluster;

import akka.actor.ActorRef;
import akka.actor.PoisonPill;
import akka.actor.typed.ActorSystem;
import akka.actor.typed.Behavior;
import akka.actor.typed.javadsl.Adapter;
import com.typesafe.config.Config;
import com.typesafe.config.ConfigFactory;
import com.typesafe.config.ConfigValueFactory;
import dev.penstock.actors.cluster.Identity;
import dev.penstock.actors.cluster.IdentityCheck;
import dev.penstock.actors.dataplane.AddressText;
import dev.penstock.actors.serialization.KryoRegistry;
import dev.penstock.runtime.certificates.CertificatesException;
import dev.penstock.runtime.certificates.LocalCertificate;
import dev.penstock.runtime.certificates.NodeFiles;
import dev.penstock.runtime.certificates.NodeTls;
import dev.penstock.runtime.config.node.ClusterSection;
import dev.penstock.runtime.config.node.NodeConfig;
import dev.penstock.runtime.config.node.TlsSection;
import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.ServerSocket;
import java.net.SocketException;
import java.net.UnknownHostException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Akka's settings for nodes of a cluster and for clients, which are no members. */
final class NodeSystems {
    static final String NAME = "penstock";

    /** Every node has it: the majority that continues after a partition is counted in these. */
    static final String NODE_ROLE = "node";

    static final String SEED_ROLE = "seed";
    static final String WORKER_ROLE = "worker";

    static final Duration FOUNDS_AFTER = Duration.ofSeconds(3);

    /**
     * For the founding seed, if it knew others before it died. A busy machine may take long to
     * answer; whoever founds a second cluster meanwhile takes the runs of the first one away from
     * it.
     */
    static final Duration FOUNDS_AGAIN_AFTER = Duration.ofSeconds(20);

    private static final String COMMON =
            """
            akka {
              loglevel = WARNING
              stdout-loglevel = OFF
              logger-startup-timeout = 60 s # a busy machine is no reason to refuse to start
              log-dead-letters = off
              log-dead-letters-during-shutdown = off
              jvm-exit-on-fatal-error = on
              actor.allow-java-serialization = off
              # no peer has actors made here by the name of a class
              remote.deployment { enable-allow-list = on, allowed-actor-classes = [] }
              coordinated-shutdown.run-by-jvm-shutdown-hook = off
              # nodes wait most of the time: few wake-ups, and few threads that wake each other.
              # Beyond 33 ms the cluster would start a second scheduler.
              scheduler.tick-duration = 30 ms
              actor.internal-dispatcher.fork-join-executor { parallelism-min = 2, parallelism-max = 4 }
              remote.default-remote-dispatcher.fork-join-executor { parallelism-min = 2, parallelism-max = 4 }
              remote.artery {
                transport = tcp
                bind.bind-timeout = 20 s # many processes that start on few cores
                advanced {
                  maximum-frame-size = 2 MiB # the times of a rank's ops travel in one message
                  outbound-message-queue-size = 8192
                  inbound-lanes = 1
                }
              }
            }
            """;

    /**
     * A killed node is unreachable after about 3 s, and removed when membership has been stable for
     * as long as the size of the cluster needs; runs do not wait for that, they have leases of
     * their own.
     */
    private static final String MEMBER =
            """
            akka {
              actor.provider = cluster
              coordinated-shutdown.exit-jvm = off
              # for a peer that starts again where it was and does not say so: members do
              remote.artery.advanced.inject-handshake-interval = 5 s
              cluster {
                jmx.enabled = off
                gossip-interval = 1 s
                leader-actions-interval = 500 ms
                retry-unsuccessful-join-after = 2 s
                shutdown-after-unsuccessful-join-seed-nodes = off
                # with every beat each node asks up to nine others, and answers as many
                failure-detector {
                  heartbeat-interval = 1 s
                  acceptable-heartbeat-pause = 2 s
                  expected-response-after = 1 s
                }
                downing-provider-class = "akka.cluster.sbr.SplitBrainResolverProvider"
                split-brain-resolver {
                  active-strategy = keep-majority
                  # reachability that changes for a while, as on a switch that starts again, is no
                  # reason to give up all runs of all nodes
                  down-all-when-unstable = 5 minutes
                  keep-majority.role = "node"
                }
                typed.receptionist.distributed-data {
                  gossip-interval = 1 s
                  notify-subscribers-interval = 200 ms
                }
                configuration-compatibility-check.checkers.penstock = "%s"
              }
            }
            """
                    .formatted(IdentityCheck.class.getName());

    private static final NavigableMap<Integer, Integer> ADVISED =
            new TreeMap<>(Map.of(5, 7, 10, 10, 20, 13, 50, 17, 100, 20, 1_000, 30));

    private static final Logger LOG = LoggerFactory.getLogger(NodeSystems.class);
    private static final int MOST_ADDRESSES = 8;

    private NodeSystems() {}

    /** Who a process of this version is. */
    static Identity identity(String clusterId, String process) {
        Config config = ConfigFactory.load();
        String registry =
                KryoRegistry.ofProtocols(config.getStringList("penstock.wire.protocols"))
                        .fingerprint();
        return new Identity(clusterId, Identity.PROTOCOL, registry, process);
    }

    /**
     * A member of a cluster, which joins nobody yet.
     *
     * @param port as configured, or the one from before
     * @param foundsAfter for how long the founding seed asks others first; all others ask anew
     *     after it
     * @throws ClusterException if it cannot listen there
     */
    static <T> ActorSystem<T> member(
            Behavior<T> guardian,
            NodeConfig node,
            int port,
            Duration foundsAfter,
            Identity identity) {
        ClusterSection cluster = node.cluster();
        List<String> roles =
                switch (cluster.role()) {
                    case SEED -> List.of(NODE_ROLE, SEED_ROLE);
                    case WORKER -> List.of(NODE_ROLE, WORKER_ROLE);
                    case BOTH -> List.of(NODE_ROLE, SEED_ROLE, WORKER_ROLE);
                };
        Config own =
                ConfigFactory.parseMap(
                        Map.of(
                                "akka.remote.artery.canonical.hostname",
                                AddressText.host(node.host()),
                                "akka.remote.artery.canonical.port",
                                port,
                                "akka.remote.artery.bind.hostname",
                                cluster.bind(),
                                "akka.remote.artery.bind.port",
                                port,
                                "akka.cluster.roles",
                                roles,
                                "akka.cluster.seed-node-timeout",
                                foundsAfter,
                                "akka.cluster.split-brain-resolver.stable-after",
                                stableAfter(cluster.size()) + " s"));
        Config config =
                own.withFallback(NodeManagement.settings(node))
                        .withFallback(tls(files(node.tls()), node.host()))
                        .withFallback(identityConfig(identity))
                        .withFallback(ConfigFactory.parseString(MEMBER));
        requireOfThisMachine(cluster.bind());
        return start(guardian, config, cluster.bind(), port);
    }

    /** Seconds, as Akka advises them: news takes longer to reach all of a larger cluster. */
    static int stableAfter(int nodes) {
        return ADVISED.ceilingEntry(Math.min(nodes, ADVISED.lastKey())).getValue();
    }

    /**
     * A client: it can be reached at an address of this machine, but is no member.
     *
     * @param files where the cluster has TLS
     * @throws ClusterException if it cannot listen there
     */
    static <T> ActorSystem<T> client(
            Behavior<T> guardian, String address, Optional<NodeFiles> files) {
        Config config =
                ConfigFactory.parseMap(
                        Map.of(
                                "akka.actor.provider",
                                "remote",
                                "akka.remote.artery.canonical.hostname",
                                AddressText.host(address),
                                "akka.remote.artery.canonical.port",
                                0,
                                "akka.remote.warn-about-direct-use",
                                "off"));
        return start(guardian, config.withFallback(tls(files, address)), address, 0);
    }

    /**
     * Closes all sockets of a system that ends. Akka waits there until every connection has said
     * its farewell, and one with TLS whose peer does not listen to this node any more may never do
     * so; meanwhile the port stays taken.
     */
    static void closeSockets(ActorSystem<?> system) {
        Adapter.toClassic(system)
                .actorSelection("/system/IO-TCP")
                .tell(PoisonPill.getInstance(), ActorRef.noSender());
    }

    private static Config identityConfig(Identity identity) {
        return ConfigFactory.empty()
                .withValue("penstock.identity", ConfigValueFactory.fromMap(identity.facts()));
    }

    /** The files of a node with TLS. */
    static Optional<NodeFiles> files(TlsSection tls) {
        return tls.isOn()
                ? Optional.of(
                        new NodeFiles(
                                tls.certificate().orElseThrow(),
                                tls.key().orElseThrow(),
                                tls.authority().orElseThrow()))
                : Optional.empty();
    }

    /**
     * Nodes that are reached on the loopback interface only, and their clients, are of one user.
     *
     * @param host under which others reach this process
     */
    private static Config tls(Optional<NodeFiles> files, String host) {
        if (files.isPresent()) {
            return NodeTls.settings(files.get());
        }
        try {
            return isLoopback(host)
                    ? NodeTls.localSettings(LocalCertificate.ofUser())
                    : ConfigFactory.empty();
        } catch (CertificatesException e) {
            throw new ClusterException(String.valueOf(e.getMessage()), e);
        }
    }

    private static boolean isLoopback(String host) {
        try {
            return InetAddress.getByName(host).isLoopbackAddress();
        } catch (UnknownHostException e) {
            return false; // listening there will fail
        }
    }

    /** Akka would say it, too, but later, and that the port may be taken. */
    private static void requireOfThisMachine(String bind) {
        try (var socket = new ServerSocket()) {
            socket.bind(new InetSocketAddress(InetAddress.getByName(bind), 0));
        } catch (UnknownHostException e) {
            throw new ClusterException(
                    "cluster.bind: expected an address of this machine%s, got %s, which no name service knows"
                            .formatted(addresses(), bind),
                    e);
        } catch (BindException e) {
            throw new ClusterException(
                    "cluster.bind: expected an address of this machine%s, got %s; an address that others reach this node under and that is not its own goes to cluster.advertise"
                            .formatted(addresses(), bind),
                    e);
        } catch (IOException e) {
            LOG.debug("whether {} is of this machine is seen when it listens there", bind, e);
        }
    }

    private static String addresses() {
        try {
            return NetworkInterface.networkInterfaces()
                    .flatMap(NetworkInterface::inetAddresses)
                    .filter(address -> !address.isLinkLocalAddress())
                    .map(address -> address.getHostAddress().replaceFirst("%.*", ""))
                    .sorted()
                    .limit(MOST_ADDRESSES)
                    .collect(Collectors.joining(", ", ", such as ", ""));
        } catch (SocketException e) {
            return "";
        }
    }

    private static <T> ActorSystem<T> start(
            Behavior<T> guardian, Config config, String address, int port) {
        Config all =
                config.withFallback(ConfigFactory.parseString(COMMON))
                        .withFallback(ConfigFactory.load());
        try {
            return ActorSystem.create(guardian, NAME, all);
        } catch (RuntimeException e) {
            throw cannotListen(e, address, port);
        }
    }

    private static RuntimeException cannotListen(RuntimeException e, String address, int port) {
        for (Throwable cause = e; cause != null; cause = cause.getCause()) {
            if (cause instanceof BindException
                    || String.valueOf(cause.getMessage()).contains("Bind failed")
                    || String.valueOf(cause.getMessage()).contains("Failed to bind")) {
                return new ClusterException(
                        "expected to listen on %s:%d, but that is taken or not an address of this machine: is another node running there? try another cluster.port, or 0 for a free one"
                                .formatted(address, port),
                        e);
            }
        }
        return e;
    }
}
