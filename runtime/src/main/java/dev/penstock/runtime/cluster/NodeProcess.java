package dev.penstock.runtime.cluster;

import akka.Done;
import akka.actor.Address;
import akka.actor.AddressFromURIString;
import akka.actor.CoordinatedShutdown;
import akka.actor.typed.ActorRef;
import akka.actor.typed.ActorRefResolver;
import akka.actor.typed.ActorSystem;
import akka.actor.typed.Behavior;
import akka.actor.typed.SupervisorStrategy;
import akka.actor.typed.javadsl.AskPattern;
import akka.actor.typed.javadsl.Behaviors;
import akka.cluster.Member;
import akka.cluster.MemberStatus;
import akka.cluster.typed.Cluster;
import akka.cluster.typed.ClusterSingleton;
import akka.cluster.typed.ClusterSingletonSettings;
import akka.cluster.typed.JoinSeedNodes;
import akka.cluster.typed.SingletonActor;
import dev.penstock.actors.cluster.ClusterNode;
import dev.penstock.actors.cluster.ClusterRuns;
import dev.penstock.actors.cluster.Greeting;
import dev.penstock.actors.cluster.Identity;
import dev.penstock.actors.cluster.NodeOffer;
import dev.penstock.actors.cluster.RunStanding;
import dev.penstock.actors.dataplane.AddressText;
import dev.penstock.actors.dataplane.HostIdentity;
import dev.penstock.cuda.Devices;
import dev.penstock.runtime.certificates.NodeFiles;
import dev.penstock.runtime.config.node.ClusterSection;
import dev.penstock.runtime.config.node.NodeConfig;
import dev.penstock.runtime.config.reading.Bytes;
import dev.penstock.runtime.launch.BuiltVersion;
import dev.penstock.runtime.launch.NodeInterface;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.stream.StreamSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A node of a cluster: a seed, a worker or both. When the others have taken it for dead, it starts
 * its actor system anew and joins again.
 */
public final class NodeProcess {
    /** Name of the actor on every seed that takes what clients say. */
    static final String FRONT_DESK = "front-desk";

    private static final Logger LOG = LoggerFactory.getLogger(NodeProcess.class);
    private static final Duration LISTENING = Duration.ofSeconds(60);
    private static final Duration LEAVING = Duration.ofSeconds(10);
    private static final Duration RUNS_END = Duration.ofSeconds(30);
    private static final Duration POLL = Duration.ofMillis(300);

    private final NodeConfig config;
    private final ClusterSection section;
    private final Optional<NodeFiles> files;
    private final Consumer<String> tell;
    private final String name;
    private final Path runs;
    private final Optional<MemberJournal> journal;
    private int port;

    /** Whether this node has listened before. */
    private boolean isAnew;

    /**
     * @param tell takes lines for people, from any thread
     */
    public NodeProcess(NodeConfig config, Consumer<String> tell) {
        this.config = config;
        this.section = config.cluster();
        this.files = NodeSystems.files(config.tls());
        this.tell = tell;
        this.name =
                section.name()
                        .orElseGet(() -> HostIdentity.name() + "-" + ProcessHandle.current().pid());
        this.runs = section.runs().toAbsolutePath().normalize();
        this.port = section.port();
        this.journal =
                section.role().keepsRuns()
                        ? Optional.of(
                                new MemberJournal(runs.resolve(".members-of-" + journalName())))
                        : Optional.empty();
    }

    /** A seed that has neither a name nor a port is never the same again. */
    private String journalName() {
        return section.name().orElse(config.host() + "-" + section.port()).replace('/', '-');
    }

    /**
     * Takes part until asked to end, by the future or by an interrupt of the calling thread.
     *
     * @param end completed when the node is to leave
     * @throws ClusterException if it cannot listen or is not allowed to join
     */
    public void run(CompletableFuture<Void> end) {
        files.ifPresent(own -> ClusterClient.requireGood(own, config.host()));
        while (true) {
            ActorSystem<Void> system;
            try {
                system = start(() -> isToEnd(end));
            } catch (ClusterException e) {
                if (isAnew && isToEnd(end)) {
                    return; // it only waited for its port
                }
                throw e;
            }
            CompletableFuture<Done> ended = system.getWhenTerminated().toCompletableFuture();
            awaitEither(end, ended, system);
            if (end.isDone()) {
                leave(system);
                return;
            }
            awaitEnd(system, ended);
            CoordinatedShutdown.Reason reason =
                    CoordinatedShutdown.get(system)
                            .getShutdownReason()
                            .orElse(CoordinatedShutdown.unknownReason());
            if (reason instanceof CoordinatedShutdown.IncompatibleConfigurationDetectedReason$) {
                throw refused();
            }
            tell.accept(
                    "this node was taken for dead and is out of the cluster (%s): it starts anew and joins again"
                            .formatted(reason));
        }
    }

    /**
     * Waits until this node is to leave or Akka begins to shut the system down: the end of a system
     * may take long, or never come.
     */
    private static void awaitEither(
            CompletableFuture<Void> end, CompletableFuture<Done> ended, ActorSystem<Void> system) {
        var begun = new CompletableFuture<Done>();
        CoordinatedShutdown shutdown = CoordinatedShutdown.get(system);
        shutdown.addTask(
                CoordinatedShutdown.PhaseBeforeServiceUnbind(),
                "node-process",
                () -> {
                    begun.complete(Done.done());
                    return begun;
                });
        if (shutdown.getShutdownReason().isPresent()) {
            return; // it takes no tasks any more
        }
        try {
            CompletableFuture.anyOf(end, ended, begun).get();
        } catch (InterruptedException e) {
            end.complete(null); // leaving takes waits of its own, so the flag stays cleared
        } catch (ExecutionException e) {
            LOG.info("this node's part ends", e);
        }
    }

    /** Afterwards the node's port is free, unless the system does not end even without sockets. */
    private static void awaitEnd(ActorSystem<Void> system, CompletableFuture<Done> ended) {
        if (await(ended, LEAVING)) {
            return;
        }
        LOG.warn("the node's actor system did not end within {}: its sockets are closed", LEAVING);
        NodeSystems.closeSockets(system);
        if (!await(ended, LEAVING)) {
            LOG.warn("the node's actor system did not end without sockets within {}", LEAVING);
        }
    }

    /** Returns whether the future completed in time. */
    private static boolean await(CompletableFuture<?> future, Duration patience) {
        try {
            future.get(patience.toMillis(), TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            throw new IllegalStateException("interrupted while a node takes part", e);
        } catch (ExecutionException | TimeoutException e) {
            return false;
        }
        return true;
    }

    /** Akka's own refusal does not say what the other side is. */
    private ClusterException refused() {
        return new ClusterException(
                ClusterClient.differenceFrom(identity(), others(), config.host(), files)
                        .orElseGet(
                                () ->
                                        "the cluster at %s refused this node, or this node the cluster: see the line above"
                                                .formatted(
                                                        NodeManagement.asked(config, others()))));
    }

    private Identity identity() {
        String where = port == 0 ? config.host() : place(); // not known before it listens
        return NodeSystems.identity(
                section.clusterId(),
                "node %s (%s, pid %d)".formatted(name, where, ProcessHandle.current().pid()));
    }

    private static boolean isToEnd(CompletableFuture<Void> end) {
        return end.isDone() || Thread.currentThread().isInterrupted();
    }

    private ActorSystem<Void> start(BooleanSupplier isUnwanted) {
        Identity identity = identity();
        List<String> others = others();
        ActorSystem<Void> system =
                Rebinding.bind(
                        section.port(),
                        port,
                        isAnew ? LISTENING : Duration.ZERO,
                        isUnwanted,
                        on ->
                                NodeSystems.member(
                                        guardian(identity, others),
                                        config,
                                        on,
                                        foundsCluster() && knewOthers()
                                                ? NodeSystems.FOUNDS_AGAIN_AFTER
                                                : NodeSystems.FOUNDS_AFTER,
                                        identity));
        isAnew = true;
        Cluster cluster = Cluster.get(system);
        Address self = cluster.selfMember().address();
        int before = port;
        port = self.getPort().map(Integer.class::cast).orElse(port);
        if (port != before || section.port() != 0) {
            tell.accept(
                    "%s %s (pid %d) listens on %s"
                            .formatted(
                                    section.role().keepsRuns() ? "seed" : "worker",
                                    name,
                                    ProcessHandle.current().pid(),
                                    Members.place(self)));
        }
        NodeManagement management = new NodeManagement(config, system);
        management.start().ifPresent(tell);
        if (config.management().findsNodes()) {
            management.join();
        } else {
            cluster.manager().tell(new JoinSeedNodes(seeds(self, others)));
        }
        return system;
    }

    private List<Address> seeds(Address self, List<String> others) {
        List<Address> seeds = new ArrayList<>();
        if (foundsCluster()) {
            seeds.add(self); // Akka asks the others first and founds a cluster if none answers
        }
        others.stream()
                .filter(place -> !place.equals(Members.place(self)))
                .map(NodeProcess::address)
                .forEach(seeds::add);
        return seeds;
    }

    /** Whether this seed was in a cluster with others before it died: they may still be in it. */
    private boolean knewOthers() {
        return journal.stream()
                .flatMap(file -> file.read().stream())
                .anyMatch(member -> !member.equals(place()));
    }

    private String place() {
        return AddressText.host(config.host()) + ":" + port;
    }

    /** Seeds as configured, and whom this seed knew before it died. */
    private List<String> others() {
        Set<String> others = new LinkedHashSet<>(section.seeds());
        journal.ifPresent(file -> others.addAll(file.read()));
        return others.stream().filter(place -> !place.equals(place())).toList();
    }

    /** One seed founds: the only one, or the first of the list that all seeds have. */
    private boolean foundsCluster() {
        return section.role().keepsRuns()
                && (section.seeds().isEmpty() || section.seeds().getFirst().equals(place()));
    }

    static Address address(String place) {
        return AddressFromURIString.parse("akka://" + NodeSystems.NAME + "@" + place);
    }

    private Behavior<Void> guardian(Identity identity, List<String> others) {
        return Behaviors.setup(
                context -> {
                    context.spawn(
                            Members.watch(NodeManagement.asked(config, others), journal, tell),
                            NodeManagement.MEMBERS);
                    if (section.role().hostsRanks()) {
                        context.spawn(
                                ClusterNode.create(
                                        offer(Cluster.get(context.getSystem())), joiner()),
                                "node");
                    }
                    if (section.role().keepsRuns()) {
                        context.spawn(Greeting.create(identity), Greeting.ACTOR);
                        context.spawn(frontDesk(context.getSystem()), FRONT_DESK);
                    }
                    return Behaviors.empty();
                });
    }

    /** Clients know its path, and it knows where the runs are kept. */
    private Behavior<ClusterRuns.Command> frontDesk(ActorSystem<?> system) {
        Behavior<ClusterRuns.Command> keeping =
                Behaviors.supervise(
                                ClusterRuns.create(
                                        new SubmittedRuns(
                                                runs, config.isSecured(), section.clusterId()),
                                        hostId()))
                        .onFailure(SupervisorStrategy.restart());
        ActorRef<ClusterRuns.Command> proxy =
                ClusterSingleton.get(system)
                        .init(
                                SingletonActor.of(keeping, "runs")
                                        .withSettings(
                                                ClusterSingletonSettings.create(system)
                                                        .withRole(NodeSystems.SEED_ROLE)));
        return Behaviors.receiveMessage(
                command -> {
                    proxy.tell(command);
                    return Behaviors.same();
                });
    }

    private JoinedRuns joiner() {
        return new JoinedRuns(
                new NodeInterface(config.dataHost(), config.advertisedDataHost()),
                config.isSecured(),
                !section.role().keepsRuns());
    }

    private String hostId() {
        return section.hostId().orElseGet(HostIdentity::ofThisHost);
    }

    private NodeOffer offer(Cluster cluster) {
        long memory =
                section.memory().map(Bytes::bytes).orElseGet(() -> ThisHost.freeBytes() / 5 * 4);
        return new NodeOffer(
                name,
                cluster.selfMember().address().toString(),
                hostId(),
                ProcessHandle.current().pid(),
                cluster.selfMember().uniqueAddress().longUid(),
                BuiltVersion.text(),
                List.of(Devices.survey().automatic()),
                memory,
                Runtime.getRuntime().availableProcessors());
    }

    // ---- leaving ----------------------------------------------------------------------------

    private void leave(ActorSystem<Void> system) {
        if (section.role().keepsRuns()) {
            if (anotherSeedIsUp(system)) {
                tell.accept("leaves: another seed goes on with the runs");
            } else {
                endRuns(system);
            }
        }
        CompletableFuture<Done> left =
                CoordinatedShutdown.get(system)
                        .runAll(CoordinatedShutdown.clusterLeavingReason())
                        .toCompletableFuture();
        try {
            left.get(LEAVING.toMillis(), TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (ExecutionException | TimeoutException e) {
            LOG.warn("left the cluster without a farewell", e);
        }
    }

    private static boolean anotherSeedIsUp(ActorSystem<Void> system) {
        Cluster cluster = Cluster.get(system);
        Set<Member> unreachable = cluster.state().getUnreachable();
        return StreamSupport.stream(cluster.state().getMembers().spliterator(), false)
                .filter(member -> member.hasRole(NodeSystems.SEED_ROLE))
                .filter(member -> member.status().equals(MemberStatus.up()))
                .filter(member -> !unreachable.contains(member))
                .anyMatch(member -> !member.equals(cluster.selfMember()));
    }

    /** The last seed takes its runs with it: they finish their step and save. */
    private void endRuns(ActorSystem<Void> system) {
        ActorRef<ClusterRuns.Command> runsKept =
                ActorRefResolver.get(system)
                        .resolveActorRef(
                                "akka://%s/user/%s".formatted(NodeSystems.NAME, FRONT_DESK));
        long deadline = System.nanoTime() + RUNS_END.toNanos();
        try {
            while (System.nanoTime() < deadline) {
                List<RunStanding> open =
                        AskPattern.<ClusterRuns.Command, ClusterRuns.RunList>ask(
                                        runsKept,
                                        ClusterRuns.ListRuns::new,
                                        Duration.ofSeconds(2),
                                        system.scheduler())
                                .toCompletableFuture()
                                .join()
                                .runs()
                                .stream()
                                .filter(run -> !run.state().hasEnded())
                                .toList();
                if (open.isEmpty()) {
                    return;
                }
                for (RunStanding run : open) {
                    tell.accept("ends run " + run.run());
                    runsKept.tell(new ClusterRuns.StopRun(run.run(), system.ignoreRef()));
                }
                TimeUnit.MILLISECONDS.sleep(POLL.toMillis());
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (CompletionException e) {
            LOG.info("nobody keeps runs any more", e);
        }
    }
}
