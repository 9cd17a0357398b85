package dev.penstock.runtime.cluster;

import akka.actor.Address;
import akka.actor.typed.Behavior;
import akka.actor.typed.javadsl.AbstractBehavior;
import akka.actor.typed.javadsl.ActorContext;
import akka.actor.typed.javadsl.Behaviors;
import akka.actor.typed.javadsl.Receive;
import akka.actor.typed.javadsl.TimerScheduler;
import akka.cluster.ClusterEvent;
import akka.cluster.Member;
import akka.cluster.MemberStatus;
import akka.cluster.typed.Cluster;
import akka.cluster.typed.Subscribe;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.stream.StreamSupport;

/** Says who comes and goes, and writes it down where there is a journal. */
final class Members extends AbstractBehavior<Members.Command> {
    /** What it understands; never leaves its process. */
    sealed interface Command {}

    private record Event(ClusterEvent.ClusterDomainEvent event) implements Command {}

    private record StillAlone() implements Command {}

    private static final Duration PATIENCE = Duration.ofSeconds(5);

    private final Cluster cluster;
    private final List<String> asked;
    private final Optional<MemberJournal> journal;
    private final Consumer<String> tell;
    private final TreeMap<String, Member> up = new TreeMap<>();

    private Members(
            ActorContext<Command> context,
            TimerScheduler<Command> timers,
            List<String> asked,
            Optional<MemberJournal> journal,
            Consumer<String> tell) {
        super(context);
        this.cluster = Cluster.get(context.getSystem());
        this.asked = asked;
        this.journal = journal;
        this.tell = tell;
        cluster.subscriptions()
                .tell(
                        Subscribe.create(
                                context.messageAdapter(
                                        ClusterEvent.ClusterDomainEvent.class, Event::new),
                                ClusterEvent.ClusterDomainEvent.class));
        timers.startSingleTimer(new StillAlone(), PATIENCE);
    }

    /**
     * Watches the membership.
     *
     * @param asked the seeds that this node asks to join
     * @param tell takes a line for people
     */
    static Behavior<Command> watch(
            List<String> asked, Optional<MemberJournal> journal, Consumer<String> tell) {
        return Behaviors.setup(
                context ->
                        Behaviors.withTimers(
                                timers -> new Members(context, timers, asked, journal, tell)));
    }

    @Override
    public Receive<Command> createReceive() {
        return newReceiveBuilder().onMessage(Command.class, this::onCommand).build();
    }

    private Behavior<Command> onCommand(Command command) {
        switch (command) {
            case Event(ClusterEvent.MemberUp joined) -> onUp(joined.member());
            case Event(ClusterEvent.MemberRemoved removed) -> onRemoved(removed.member());
            case Event(ClusterEvent.UnreachableMember silent) ->
                    tell.accept("node %s does not answer".formatted(name(silent.member())));
            case Event(ClusterEvent.ReachableMember back) ->
                    tell.accept("node %s answers again".formatted(name(back.member())));
            case Event _ -> {
                // of no interest to people
            }
            case StillAlone _ -> onStillAlone();
        }
        return this;
    }

    private void onUp(Member member) {
        up.put(place(member.address()), member);
        if (member.uniqueAddress().equals(cluster.selfMember().uniqueAddress())) {
            tell.accept("joined the cluster: " + census());
        } else if (isIn()) {
            tell.accept(
                    "%s %s joined: %s"
                            .formatted(
                                    member.hasRole(NodeSystems.SEED_ROLE) ? "seed" : "worker",
                                    name(member),
                                    census()));
        }
        write();
    }

    private void onRemoved(Member member) {
        up.remove(place(member.address()));
        if (isIn()) {
            tell.accept("node %s is out of the cluster: %s".formatted(name(member), census()));
        }
        write();
    }

    private boolean isIn() {
        return cluster.selfMember().status().equals(MemberStatus.up());
    }

    private String census() {
        long seeds =
                up.values().stream()
                        .filter(member -> member.hasRole(NodeSystems.SEED_ROLE))
                        .count();
        long workers =
                up.values().stream()
                        .filter(member -> member.hasRole(NodeSystems.WORKER_ROLE))
                        .count();
        return "%d %s, %d %s"
                .formatted(
                        seeds,
                        seeds == 1 ? "seed" : "seeds",
                        workers,
                        workers == 1 ? "worker" : "workers");
    }

    private void write() {
        if (isIn()) {
            journal.ifPresent(file -> file.write(up.keySet()));
        }
    }

    private void onStillAlone() {
        boolean joined =
                StreamSupport.stream(cluster.state().getMembers().spliterator(), false)
                        .anyMatch(
                                member ->
                                        member.uniqueAddress()
                                                .equals(cluster.selfMember().uniqueAddress()));
        if (!joined) {
            tell.accept(
                    "waits for a seed at %s: none has answered yet"
                            .formatted(String.join(", ", asked)));
        }
    }

    private static String name(Member member) {
        return place(member.address());
    }

    /** {@code host:port}. */
    static String place(Address address) {
        return address.getHost().orElse("?") + ":" + address.getPort().orElse(0);
    }
}
