package dev.penstock.actors.cluster;

import akka.actor.testkit.typed.javadsl.TestInbox;
import akka.actor.typed.ActorRef;
import dev.penstock.actors.simulation.World;
import dev.penstock.actors.spi.RunOutcome;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A seed's process. When it keeps the runs, it does around a real {@link ClusterCoordinator} what
 * {@link ClusterRuns} does.
 */
final class SimSeed extends SimMember {
    private static final long TICK = World.SECOND;
    private static final long ASK_AGAIN = World.SECOND;
    private static final long LOOK_AGAIN = 3 * World.SECOND;
    private static final long GATHERING = 10 * World.MILLISECOND;
    private static final long LEASE = 15 * World.SECOND;
    private static final long KEPT_LOCK = 60 * World.SECOND;

    /** Who is at an address. */
    private record Contact(NodeOffer offer, SimClusterNode node) {}

    /** A run that it keeps. */
    private static final class Kept {
        final SimRunFiles files;
        final TestInbox<ClusterNode.Report> reports;
        @Nullable SimRunSupervisor supervisor;
        long gathering;

        Kept(SimRunFiles files, String inbox) {
            this.files = files;
            this.reports = TestInbox.create(inbox);
        }
    }

    final String host;
    private final long clockOffset;
    private final Map<String, Contact> contacts = new TreeMap<>();
    private final Map<String, Kept> runs = new LinkedHashMap<>();
    private final TestInbox<ClusterNode.Introduction> introductions;
    private @Nullable ClusterCoordinator coordinator;
    private long pausedSince;
    private long locksKeptUntil;

    SimSeed(ClusterSimulation cluster, String name, String host, long uid) {
        super(cluster, name, uid);
        this.host = host;
        this.clockOffset = world.between(-1_000 * World.SECOND, 1_000 * World.SECOND);
        this.introductions = TestInbox.create("introductions-" + uid);
    }

    boolean keeps() {
        return coordinator != null;
    }

    /** It is the oldest seed now. */
    void begin() {
        if (keeps()) {
            return;
        }
        world.note("%s keeps the cluster's runs", this);
        coordinator = new ClusterCoordinator(cluster.members());
        coordinator.onLooking(clock());
        onListed();
        after(TICK, this::tick);
        after(0, this::look);
        after(ClusterRun.LEAST_PATIENCE.toNanos(), this::look);
    }

    private long clock() {
        return clockOffset + world.now();
    }

    private ClusterCoordinator coordinator() {
        ClusterCoordinator known = coordinator;
        if (known == null) {
            throw new IllegalStateException(this + " keeps nothing");
        }
        return known;
    }

    void hear(Consumer<ClusterCoordinator> what) {
        what.accept(coordinator());
        coordinator().drain().forEach(this::perform);
    }

    private void tick() {
        hear(it -> it.onTick(cluster.members(), clock()));
        after(TICK, this::tick);
    }

    @Override
    void pauseFor(long nanos) {
        pausedSince = isPaused() ? pausedSince : world.now();
        super.pauseFor(nanos);
    }

    /** Whether its leases have not moved for this long. */
    private boolean standsStillSince(long time) {
        return isAlive() ? isPaused() && pausedSince <= time : world.now() > locksKeptUntil;
    }

    // ---- nodes ----------------------------------------------------------------------------------

    /** The receptionist's list has changed. */
    void onListed() {
        if (keeps()) {
            cluster.listed().forEach(this::ask);
        }
    }

    private void ask(SimClusterNode node) {
        var question = new ClusterNode.Introduce(host, "", introductions.getRef());
        send(node, () -> node.hear(question));
    }

    /** The words that nodes have for it, in their order. */
    void deliver(SimClusterNode from, Consumer<Runnable> way) {
        if (introductions.hasMessages()) {
            introductions
                    .getAllReceived()
                    .forEach(each -> way.accept(() -> onIntroduced(each.offer(), from)));
        }
        runs.forEach(
                (name, run) -> {
                    if (run.reports.hasMessages()) {
                        run.reports
                                .getAllReceived()
                                .forEach(each -> way.accept(() -> onReport(name, each)));
                    }
                });
    }

    private void onReport(String run, ClusterNode.Report report) {
        world.note("%s hears of %s: %s", this, run, report);
        hear(it -> it.onReport(run, report, clock()));
    }

    /** Word of a node that may be dead by now. */
    void hearsOf(SimClusterNode node) {
        onIntroduced(node.offer, node);
    }

    private void onIntroduced(NodeOffer offer, SimClusterNode node) {
        Contact contact = new Contact(offer, node);
        if (contact.equals(contacts.put(offer.address(), contact))) {
            return;
        }
        world.note("%s meets %s", this, node);
        if (cluster.wasRemoved(node)) {
            after(world.between(0, World.SECOND), () -> onLeft(node));
        }
        hear(it -> it.onNode(offer, clock()));
    }

    /** The watch of a node ended; perhaps it lives. */
    void onLeft(SimClusterNode node) {
        Contact contact = contacts.get(node.offer.address());
        if (contact != null && contact.node() == node) {
            lost(contact, "it left the cluster");
            after(ASK_AGAIN, () -> ask(node));
        }
    }

    void onLineCut(SimClusterNode node) {
        Contact contact = contacts.get(node.offer.address());
        if (contact != null && contact.node() == node) {
            cluster.remove(node);
            lost(contact, "its process ended or started anew");
        }
    }

    private void lost(Contact contact, String how) {
        world.note("%s has lost %s: %s", this, contact.node(), how);
        contacts.remove(contact.offer().address());
        hear(it -> it.onNodeGone(contact.offer().process(), how, clock()));
    }

    @Override
    void onRemoved(SimMember other) {
        if (keeps() && other instanceof SimClusterNode node) {
            onLeft(node);
        }
    }

    @Override
    void ended() {
        locksKeptUntil = world.now() + (cluster.scenario.keptLocks() ? KEPT_LOCK : 0);
        runs.values().forEach(run -> run.reports.getAllReceived());
    }

    /** To which nodes tell what becomes of their shares. */
    List<ActorRef<ClusterNode.Report>> reports() {
        return runs.values().stream().map(run -> run.reports.getRef()).toList();
    }

    // ---- runs -----------------------------------------------------------------------------------

    void submit(ClusterScenario.Wanted wanted) {
        var files = new SimRunFiles(wanted, this);
        cluster.add(files);
        after(world.between(0, 2 * World.SECOND), () -> keep(files));
    }

    private void keep(SimRunFiles files) {
        String name = files.name();
        runs.put(name, new Kept(files, "reports-%d-%s".formatted(uid, name)));
        hear(it -> it.keep(files.open(), Optional.empty(), clock()));
    }

    boolean has(String run) {
        return runs.containsKey(run);
    }

    void stop(String run) {
        hear(it -> it.onStop(run, clock()));
    }

    void rebalance(String run) {
        hear(it -> it.rebalance(run));
    }

    Optional<RunStanding> standing(String run) {
        return coordinator == null ? Optional.empty() : coordinator.standing(run);
    }

    Optional<SimRunSupervisor> supervisor(SimRunFiles files) {
        return Optional.ofNullable(runs.get(files.name()))
                .flatMap(run -> Optional.ofNullable(run.supervisor));
    }

    /** Looks for runs whose seed is gone, and again for those that somebody still has. */
    private void look() {
        Set<SimRunFiles> others = new HashSet<>();
        for (SimRunFiles files : cluster.allFiles()) {
            if (files.isUnfinished() && !runs.containsKey(files.name())) {
                others.add(files);
                SimSeed holder = files.holder();
                long since = world.now();
                after(
                        holder == null ? 0 : LEASE,
                        () -> {
                            boolean free = holder == null || holder.standsStillSince(since);
                            if (files.holder() == holder && free && files.isUnfinished()) {
                                world.note("%s takes %s up", this, files.name());
                                files.hold(this);
                                found(files);
                            }
                        });
            }
        }
        after(
                others.isEmpty() ? 0 : LEASE,
                () -> {
                    others.removeIf(files -> runs.containsKey(files.name()));
                    Set<String> processes = new HashSet<>();
                    others.forEach(files -> processes.addAll(files.processes()));
                    hear(it -> it.onLooked(processes, clock()));
                    if (!others.isEmpty()) {
                        after(LOOK_AGAIN, this::look);
                    }
                });
    }

    private void found(SimRunFiles files) {
        if (files.isHeldBy(this) && !runs.containsKey(files.name())) {
            keep(files);
        }
    }

    // ---- what is to be done ---------------------------------------------------------------------

    private void tell(String address, ClusterNode.Command command) {
        Contact contact = contacts.get(address);
        if (contact != null) {
            send(contact.node(), () -> contact.node().hear(command));
        }
    }

    private void perform(ClusterEffect effect) {
        Kept run = runs.get(effect.run());
        if (run == null) {
            return;
        }
        if (!(effect instanceof ClusterEffect.TellSupervisor)) {
            world.note("%s: %s", this, effect);
        }
        String id = run.files.plan.runId();
        ActorRef<ClusterNode.Report> reports = run.reports.getRef();
        switch (effect) {
            case ClusterEffect.AskForShare(String _, String node) ->
                    tell(node, new ClusterNode.AdoptRun(id, uid, reports));
            case ClusterEffect.OpenShare(String _, String node, long number, boolean starts) ->
                    tell(
                            node,
                            new ClusterNode.OpenRun(
                                    id,
                                    number,
                                    "/runs/" + id,
                                    run.files.plan.hash(),
                                    starts,
                                    uid,
                                    reports));
            case ClusterEffect.HostRanks host -> {
                int most = run.files.wanted.ranksPerNode();
                if (most > 0 && host.ranks().size() > most) {
                    world.violated("%s is to host more than %d ranks: %s", host.node(), most, host);
                }
                tell(
                        host.node(),
                        new ClusterNode.HostRanks(
                                id,
                                host.number(),
                                host.ranks(),
                                host.driver(),
                                host.key(),
                                reports));
            }
            case ClusterEffect.StartDriver(String _, String node, long number) ->
                    tell(node, new ClusterNode.StartDriver(id, number, reports));
            case ClusterEffect.CloseShare(String _, String node) ->
                    tell(node, new ClusterNode.CloseRun(id, reports));
            case ClusterEffect.Gather(String name) -> {
                long gathering = ++run.gathering;
                after(
                        GATHERING,
                        () -> {
                            if (run.gathering == gathering) {
                                hear(it -> it.onGathered(name, clock()));
                            }
                        });
            }
            case ClusterEffect.Supervise _ -> {
                var supervisor = new SimRunSupervisor(this, run.files);
                run.supervisor = supervisor;
                after(0, supervisor::begin);
            }
            case ClusterEffect.TellSupervisor(String _, var command) -> {
                SimRunSupervisor supervisor = run.supervisor;
                if (supervisor == null) {
                    world.violated("%s: nobody supervises %s: %s", this, id, command);
                } else {
                    after(0, () -> supervisor.hear(command));
                }
            }
            case ClusterEffect.TellPeople _ -> {}
            case ClusterEffect.End(String _, RunOutcome outcome, var _) -> {
                after(world.between(0, World.SECOND), () -> finish(run.files, outcome));
            }
        }
    }

    private void finish(SimRunFiles files, RunOutcome outcome) {
        if (files.isHeldBy(this) && files.ending() == null) {
            cluster.ended(files, outcome);
        }
        files.giveBack(this);
    }

    // ---- what supervisors want ------------------------------------------------------------------

    void startRank(SimRunFiles run, int rank) {
        after(0, () -> hear(it -> it.onStartRank(run.name(), rank, clock())));
    }

    void placed(SimRunFiles run, int rank, String process) {
        after(0, () -> hear(it -> it.onPlaced(run.name(), rank, process, clock())));
    }

    void takeIn(SimRunFiles run, Map<Integer, String> processes, Consumer<Boolean> answer) {
        after(
                0,
                () -> {
                    List<Boolean> granted = new ArrayList<>();
                    hear(it -> granted.add(it.takeIn(run.name(), processes)));
                    after(0, () -> answer.accept(granted.getFirst()));
                });
    }

    void restartLink(SimRunFiles run, Set<String> gone) {
        Set<String> named = Set.copyOf(gone);
        after(0, () -> hear(it -> it.onRestartLink(run.name(), named, clock())));
    }

    void step(SimRunFiles run, long step) {
        after(0, () -> hear(it -> it.onStep(run.name(), step, clock())));
    }

    void recovering(SimRunFiles run, int epoch, String cause) {
        after(0, () -> hear(it -> it.onRecovering(run.name(), epoch, cause, clock())));
    }

    void recovered(SimRunFiles run, long step) {
        after(0, () -> hear(it -> it.onRecovered(run.name(), step, clock())));
    }

    void supervisorEnded(SimRunFiles run, RunOutcome outcome) {
        after(0, () -> hear(it -> it.onEnded(run.name(), outcome, clock())));
    }
}
