package dev.penstock.actors.cluster;

import akka.actor.testkit.typed.Effect;
import akka.actor.testkit.typed.javadsl.BehaviorTestKit;
import akka.actor.typed.ActorRef;
import akka.actor.typed.Behavior;
import akka.actor.typed.javadsl.ActorContext;
import akka.actor.typed.javadsl.Behaviors;
import com.typesafe.config.Config;
import dev.penstock.actors.simulation.World;
import dev.penstock.actors.spi.RunOutcome;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.stream.Stream;

/**
 * A cluster in one thread and virtual time: real coordinators and nodes over imagined processes,
 * messages, runs and disks. Things go wrong for a while; then nodes with room for everything join,
 * and everything that was submitted has to come to its end. At last one run asks for all the room
 * that there is: it gets it if nothing was forgotten.
 */
final class ClusterSimulation {
    private static final Config CONFIG = BehaviorTestKit.applicationTestConfig();

    /** Processes that died or stood still are back by then. */
    private static final long CALM = ClusterScenario.LAST_HARM + 100 * World.SECOND;

    /** Longer than a share waits for its owner, a seed for its nodes, and a run trains. */
    private static final long PATIENCE = 500 * World.SECOND;

    private static final long LAST_RUN_PATIENCE = 150 * World.SECOND;
    private static final String LAST_RUN = "last";

    /** A rank holds this, and more in some runs where it lives by itself. */
    private static final Long AT_LEAST = ImaginedRun.GIB;

    /** The cluster takes a silent member for dead after this long. */
    private static final long SILENCE = 12 * World.SECOND;

    /** Until all members have heard of another that came or left. */
    private static final long MOST_GOSSIP = 2 * World.SECOND;

    final World world;
    final ClusterScenario scenario;
    private final BehaviorTestKit<Consumer<ActorContext<?>>> actors;
    private final List<SimSeed> seeds = new ArrayList<>();
    private final Map<String, SimClusterNode> nodes = new TreeMap<>();
    private final Set<Long> members = new HashSet<>();
    private final Set<Long> removed = new HashSet<>();
    private final Map<String, SimRunFiles> files = new LinkedHashMap<>();
    private final Set<String> drivers = new HashSet<>();
    private long nextUid = 100;
    private int nextDriver = 1;
    private long reportDelay;
    private boolean lastRunIsIn;
    private boolean done;

    ClusterSimulation(ClusterScenario scenario, long seed) {
        this.world = new World(seed);
        this.scenario = scenario;
        Behavior<Consumer<ActorContext<?>>> root =
                Behaviors.receive(
                        (context, task) -> {
                            task.accept(context);
                            return Behaviors.same();
                        });
        this.actors = BehaviorTestKit.create(root, "cluster", CONFIG);
        for (int i = 0; i < scenario.seeds(); i++) {
            startSeed("seed-" + i);
        }
        scenario.places().forEach(place -> world.at(place.joinsAt(), () -> startNode(place)));
        scenario.wanted().forEach(wanted -> world.at(wanted.at(), () -> submit(wanted)));
        scenario.harms()
                .forEach(harm -> world.at(harm.at(), () -> ClusterHarms.happen(harm.kind(), this)));
        world.at(CALM, this::onCalm);
    }

    /** Until all is over, or something is wrong. */
    ClusterSimulation run() {
        try {
            while (!done && world.violations().isEmpty()) {
                world.step();
            }
        } catch (RuntimeException | Error e) {
            var text = new StringWriter();
            e.printStackTrace(new PrintWriter(text));
            world.violated("it breaks off: %s", text);
        }
        return this;
    }

    // ---- actors ---------------------------------------------------------------------------------

    /** A real actor in virtual time. */
    <T> BehaviorTestKit<T> spawn(Behavior<T> behavior) {
        List<ActorRef<T>> spawned = new ArrayList<>();
        actors.run(context -> spawned.add(context.spawnAnonymous(behavior)));
        List<Effect> _ = actors.getAllEffects();
        return actors.childTestKit(spawned.getFirst());
    }

    /** What is said just now is said later. */
    void delayReports(long nanos) {
        reportDelay = nanos;
    }

    /** What a node's actors have said goes on its way. */
    void deliverReports(SimClusterNode from) {
        long delay = reportDelay;
        reportDelay = 0;
        for (SimSeed seed : seeds) {
            seed.deliver(from, said -> from.after(delay, () -> from.send(seed, said)));
        }
    }

    /** A share watches its owner, who may be gone already. */
    void watch(SimShare share, ActorRef<?> owner) {
        boolean lives =
                seeds.stream()
                        .filter(seed -> members.contains(seed.uid))
                        .anyMatch(seed -> seed.reports().contains(owner));
        if (!lives) {
            share.node.after(world.between(0, World.SECOND), () -> share.onGone(owner));
        }
    }

    // ---- processes ------------------------------------------------------------------------------

    private void startSeed(String name) {
        var seed = new SimSeed(this, name, scenario.proofs() ? "host-0" : "elsewhere", nextUid++);
        seeds.add(seed);
        members.add(seed.uid);
        appointSeed();
    }

    private void startNode(ClusterScenario.Place place) {
        SimClusterNode former = nodes.get(place.name());
        if (former != null) {
            if (former.isAlive()) {
                return;
            }
            remove(former);
        }
        var node = new SimClusterNode(this, place, nextUid++);
        world.note("%s starts with room for %d on %s", node, place.gib(), place.host());
        nodes.put(place.name(), node);
        node.after(
                world.between(0, 3 * World.SECOND),
                () -> {
                    members.add(node.uid);
                    listNodes();
                });
    }

    private void listNodes() {
        for (SimSeed seed : seeds) {
            if (!wasRemoved(seed)) {
                seed.after(world.between(0, MOST_GOSSIP), seed::onListed);
            }
        }
    }

    Set<Long> members() {
        return Set.copyOf(members);
    }

    boolean wasRemoved(SimMember member) {
        return removed.contains(member.uid);
    }

    List<SimClusterNode> listed() {
        return nodes.values().stream().filter(node -> members.contains(node.uid)).toList();
    }

    List<SimClusterNode> livingNodes() {
        return nodes.values().stream().filter(SimMember::isAlive).toList();
    }

    List<SimSeed> livingSeeds() {
        return seeds.stream().filter(SimMember::isAlive).toList();
    }

    List<SimSeed> keepers() {
        return livingSeeds().stream().filter(SimSeed::keeps).toList();
    }

    /** A process ended: some see it at once, the cluster does later, and it comes back. */
    void onDeath(SimMember dead) {
        world.note("%s ends", dead);
        world.after(world.between(5 * World.SECOND, 20 * World.SECOND), () -> remove(dead));
        if (dead instanceof SimClusterNode node) {
            for (SimSeed keeper : keepers()) {
                if (keeper.host.equals(node.place.host())) {
                    keeper.after(
                            world.between(0, 50 * World.MILLISECOND), () -> keeper.onLineCut(node));
                }
            }
            world.after(world.between(0, 30 * World.SECOND), () -> startNode(node.place));
        } else {
            world.after(world.between(0, 30 * World.SECOND), () -> startSeed(dead.name));
        }
    }

    /** The cluster removes a member; one that lives hears of it and ends. */
    void remove(SimMember member) {
        if (!removed.add(member.uid)) {
            return;
        }
        members.remove(member.uid);
        world.note("the cluster removes %s", member);
        nodes.values().forEach(other -> tellRemoved(other, member));
        seeds.forEach(other -> tellRemoved(other, member));
        member.after(world.between(0, 12 * World.SECOND), member::kill);
        listNodes();
        appointSeed();
    }

    private void tellRemoved(SimMember other, SimMember member) {
        if (!other.equals(member)) {
            other.after(world.between(0, MOST_GOSSIP), () -> other.quarantine(member));
        }
    }

    /**
     * The oldest seed keeps the runs; it begins when all have heard that the one before it left.
     */
    private void appointSeed() {
        oldestSeed()
                .filter(seed -> !seed.keeps())
                .ifPresent(
                        seed ->
                                seed.after(
                                        world.between(MOST_GOSSIP, 5 * World.SECOND),
                                        () -> {
                                            if (oldestSeed().filter(seed::equals).isPresent()) {
                                                seed.begin();
                                            }
                                        }));
    }

    private Optional<SimSeed> oldestSeed() {
        return seeds.stream().filter(seed -> members.contains(seed.uid)).findFirst();
    }

    /** It stands still or is cut off: after some time it is taken for dead. */
    void watchSilence(SimMember silent) {
        world.after(
                SILENCE + world.between(0, 6 * World.SECOND),
                () -> {
                    if (!silent.isWell()) {
                        remove(silent);
                    }
                });
    }

    /** What a node said of itself comes when it is dead and another is at its address. */
    void sayLateWhoIsThere(SimClusterNode node) {
        node.kill();
        for (SimSeed keeper : keepers()) {
            keeper.after(world.between(0, 40 * World.SECOND), () -> keeper.hearsOf(node));
        }
    }

    // ---- drivers --------------------------------------------------------------------------------

    String startDriver() {
        String directory = "driver-" + nextDriver++;
        drivers.add(directory);
        return directory;
    }

    /** Whether it lived. */
    boolean endDriver(String directory) {
        return drivers.remove(directory);
    }

    boolean hasDriver(String directory) {
        return drivers.contains(directory);
    }

    // ---- runs -----------------------------------------------------------------------------------

    /** A user tries until some seed takes it. */
    private void submit(ClusterScenario.Wanted wanted) {
        Optional<SimSeed> keeper = keepers().stream().reduce((_, last) -> last);
        if (keeper.isEmpty() || !keeper.get().isWell()) {
            world.after(World.SECOND, () -> submit(wanted));
            return;
        }
        world.note("somebody submits %s", wanted);
        keeper.get().submit(wanted);
        follow(wanted);
        if (wanted.stopsAt() > 0) {
            world.at(wanted.stopsAt(), () -> stop(wanted.name()));
        }
    }

    /** One that had not begun when its seed died is unknown to the next: it is submitted again. */
    private void follow(ClusterScenario.Wanted wanted) {
        world.after(
                3 * World.SECOND,
                () -> {
                    SimRunFiles run = files(wanted.name());
                    SimSeed holder = run.holder();
                    if (run.ending() != null || run.hasBegun()) {
                        return;
                    }
                    if (holder == null || !holder.isAlive()) {
                        run.end(new RunOutcome.Failed(0, "its seed died before it began"));
                        submit(again(wanted));
                    } else {
                        follow(wanted);
                    }
                });
    }

    private static ClusterScenario.Wanted again(ClusterScenario.Wanted wanted) {
        return new ClusterScenario.Wanted(
                wanted.name() + "+",
                wanted.ranks(),
                wanted.at(),
                wanted.steps(),
                wanted.stepNanos(),
                wanted.oneHost(),
                wanted.ranksPerNode(),
                wanted.apartCostsMore(),
                wanted.stopsAt());
    }

    private void stop(String run) {
        keepers().stream()
                .filter(seed -> seed.has(run))
                .forEach(seed -> seed.after(0, () -> seed.stop(run)));
    }

    void add(SimRunFiles run) {
        files.put(run.name(), run);
    }

    SimRunFiles files(String run) {
        return Objects.requireNonNull(files.get(run), run);
    }

    List<SimRunFiles> allFiles() {
        return List.copyOf(files.values());
    }

    List<SimRankHost> hosts(SimRunFiles run) {
        return nodes.values().stream()
                .flatMap(node -> node.shares().stream())
                .filter(share -> share.files == run)
                .flatMap(share -> share.hosts.stream())
                .toList();
    }

    void ended(SimRunFiles run, RunOutcome outcome) {
        world.note("%s has ended: %s", run.name(), outcome);
        run.end(outcome);
        if (outcome instanceof RunOutcome.Failed failed
                && world.now() > CALM + 100 * World.SECOND) {
            world.violated("%s fails although nothing goes wrong any more: %s", run.name(), failed);
        }
    }

    // ---- promises -------------------------------------------------------------------------------

    /** No node holds more ranks of runs than it offered memory for. */
    void checkRoom() {
        Map<String, Long> bytes = new TreeMap<>();
        for (SimRunFiles run : files.values()) {
            SimSeed holder = run.holder();
            if (holder == null || run.ending() != null) {
                continue;
            }
            holder.supervisor(run)
                    .ifPresent(
                            it ->
                                    it.homes()
                                            .values()
                                            .forEach(at -> bytes.merge(at, AT_LEAST, Long::sum)));
        }
        for (SimClusterNode node : livingNodes()) {
            long held = bytes.getOrDefault(node.offer.process(), 0L);
            if (held > node.offer.memoryBytes()) {
                world.violated(
                        "%s is to hold %d GiB of %d",
                        node, held / ImaginedRun.GIB, node.offer.memoryBytes() / ImaginedRun.GIB);
            }
        }
    }

    private void onCalm() {
        world.note("nothing goes wrong any more");
        livingNodes().forEach(SimClusterNode::refuseNothing);
        int room = 2 * scenario.wanted().stream().mapToInt(ClusterScenario.Wanted::ranks).sum();
        Stream.concat(
                        scenario.places().stream().map(ClusterScenario.Place::host),
                        Stream.of("host-fresh"))
                .distinct()
                .forEach(
                        host ->
                                startNode(
                                        new ClusterScenario.Place(
                                                "fresh-" + host, host, room, world.now())));
        lookForTheEnd(world.now() + PATIENCE);
    }

    private void lookForTheEnd(long deadline) {
        boolean all = files.values().stream().allMatch(run -> run.ending() != null);
        if (all && !lastRunIsIn) {
            lastRunIsIn = true;
            // shares of owners that died are given up
            world.after(
                    ClusterRun.LEAST_PATIENCE.toNanos() + 30 * World.SECOND,
                    () -> {
                        checkThatAllIsGivenBack();
                        submitTheLast();
                        lookForTheEnd(world.now() + LAST_RUN_PATIENCE);
                    });
        } else if (all) {
            world.after(
                    30 * World.SECOND,
                    () -> {
                        checkThatAllIsGivenBack();
                        done = true;
                    });
        } else if (world.now() > deadline) {
            files.values().stream()
                    .filter(run -> run.ending() == null)
                    .forEach(
                            run -> world.violated("%s waits for good: %s", run.name(), state(run)));
        } else {
            world.after(World.SECOND, () -> lookForTheEnd(deadline));
        }
    }

    private String state(SimRunFiles run) {
        SimSeed holder = run.holder();
        return holder == null
                ? "nobody has it"
                : holder
                        + ": "
                        + holder.standing(run.name()).map(Object::toString).orElse("not kept")
                        + holder.supervisor(run).map(it -> "; " + it.state()).orElse("");
    }

    private void checkThatAllIsGivenBack() {
        for (SimClusterNode node : livingNodes()) {
            node.shares()
                    .forEach(
                            share ->
                                    world.violated(
                                            "%s keeps its share of %s, which has ended",
                                            node, share.files.name()));
        }
    }

    /** It takes the room of all nodes. */
    private void submitTheLast() {
        int ranks = livingNodes().stream().mapToInt(node -> node.place.gib()).sum();
        submit(
                new ClusterScenario.Wanted(
                        LAST_RUN, ranks, world.now(), 2, World.SECOND, false, 0, false, 0));
    }
}
