package dev.penstock.actors.cluster;

import dev.penstock.actors.supervisor.PipelineSupervisor;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;

/** A cluster coordinator whose nodes and supervisors do what a test says, in virtual time. */
final class CoordinatedCluster {
    static final String RUN = "run-1";

    final ClusterCoordinator coordinator = new ClusterCoordinator(Set.of());
    private final Map<String, NodeOffer> offers = new HashMap<>();
    private final Set<Long> members = new HashSet<>();
    private final List<ClusterEffect> effects = new ArrayList<>();

    /** All that were ever given. */
    private final List<ClusterEffect.Order> orders = new ArrayList<>();

    private long nextUid = 100;
    long now = 1;

    private CoordinatedCluster did() {
        List<ClusterEffect> drained = coordinator.drain();
        effects.addAll(drained);
        drained.stream()
                .filter(ClusterEffect.Order.class::isInstance)
                .map(ClusterEffect.Order.class::cast)
                .forEach(orders::add);
        return this;
    }

    // ---- nodes ------------------------------------------------------------------------------

    /** A node with room for so many ranks introduces itself; every node has a host of its own. */
    CoordinatedCluster introduces(String name, int ranks) {
        return introduces(joins(name, name, ranks));
    }

    /** A member that has not introduced itself. */
    NodeOffer joins(String name, String place, int ranks) {
        return joins(name, place, "host of " + place, ranks);
    }

    NodeOffer joins(String name, String place, String host, int ranks) {
        long uid = nextUid++;
        var offer =
                new NodeOffer(
                        name,
                        address(place),
                        host,
                        1, // as in a container
                        uid,
                        "0.1",
                        List.of("cpu"),
                        ranks * ImaginedRun.GIB,
                        2);
        offers.put(place, offer);
        members.add(uid);
        coordinator.onTick(members, now);
        did();
        return offer;
    }

    CoordinatedCluster introduces(NodeOffer offer) {
        coordinator.onNode(offer, now);
        return did();
    }

    /** A node's process ends, and the cluster removes the member. */
    CoordinatedCluster dies(String place) {
        coordinator.onNodeGone(process(place), "it left the cluster", now);
        did();
        return leaves(place);
    }

    /** The cluster removes a member; nobody watched it. */
    CoordinatedCluster leaves(String place) {
        members.remove(offer(place).uid());
        return waits(Duration.ofSeconds(1));
    }

    static String address(String place) {
        return "akka://penstock@" + place + ":1";
    }

    NodeOffer offer(String place) {
        return Objects.requireNonNull(offers.get(place), place);
    }

    String process(String place) {
        return offer(place).process();
    }

    // ---- runs -------------------------------------------------------------------------------

    CoordinatedCluster keeps(ClusterRun run) {
        coordinator.keep(run, Optional.empty(), now);
        return did();
    }

    private CoordinatedCluster reports(ClusterNode.Report report) {
        coordinator.onReport(RUN, report, now);
        return did();
    }

    /** A node has built its share, with a driver if it was to start one. */
    CoordinatedCluster opens(String place) {
        ClusterEffect.OpenShare open = last(ClusterEffect.OpenShare.class, place);
        return reports(
                        new ClusterNode.RunOpened(
                                address(place),
                                open.number(),
                                open.startsDriver() ? "driver of " + place : ""))
                .hostsWhatItIsTold();
    }

    /** The answer to one order alone. */
    CoordinatedCluster answersOpen(String place, long number) {
        return reports(new ClusterNode.RunOpened(address(place), number, "driver of " + place));
    }

    private CoordinatedCluster hostsWhatItIsTold() {
        for (ClusterEffect.HostRanks host : of(ClusterEffect.HostRanks.class)) {
            reports(new ClusterNode.RanksHosted(host.node(), host.number()));
        }
        return this;
    }

    CoordinatedCluster hosts(String place, long number) {
        return reports(new ClusterNode.RanksHosted(address(place), number));
    }

    /** What a node was told last, of a kind. */
    private <T extends ClusterEffect.Order> T last(Class<T> kind, String place) {
        return orders.stream()
                .filter(kind::isInstance)
                .map(kind::cast)
                .filter(order -> order.node().equals(address(place)))
                .reduce((_, next) -> next)
                .orElseThrow();
    }

    CoordinatedCluster refuses(String place) {
        long number = last(ClusterEffect.OpenShare.class, place).number();
        return reports(new ClusterNode.RunRefused(address(place), number, "it has another plan"));
    }

    /** A node has no share to which the order to host ranks could apply. */
    CoordinatedCluster hasGivenUp(String place) {
        long number = last(ClusterEffect.HostRanks.class, place).number();
        return reports(new ClusterNode.ShareGone(address(place), number));
    }

    /** A node says which ranks it kept, and that it started its host's driver. */
    CoordinatedCluster hasKept(String place, Integer... ranks) {
        return hasKept(place, true, ranks);
    }

    CoordinatedCluster hasKept(String place, boolean ownsDriver, Integer... ranks) {
        String driver = "driver of " + place;
        return hasKept(place, List.of(driver), driver, ownsDriver, ranks);
    }

    CoordinatedCluster hasKept(
            String place,
            List<String> namedDrivers,
            String driver,
            boolean ownsDriver,
            Integer... ranks) {
        return reports(
                new ClusterNode.ShareKept(
                        address(place),
                        List.of(ranks),
                        namedDrivers,
                        driver,
                        ownsDriver,
                        Optional.empty()));
    }

    CoordinatedCluster hasNothing(String place) {
        return reports(new ClusterNode.ShareAbsent(address(place)));
    }

    CoordinatedCluster driverDies(String place) {
        return driverDies(place, "driver of " + place);
    }

    CoordinatedCluster driverDies(String place, String directory) {
        return reports(new ClusterNode.DriverDied(address(place), directory, "kill -9"));
    }

    CoordinatedCluster driverStarts(String place, String directory) {
        long number = last(ClusterEffect.StartDriver.class, place).number();
        return reports(new ClusterNode.DriverStarted(address(place), number, directory));
    }

    /** The supervisor wants these ranks started, and nobody else dies. */
    CoordinatedCluster wants(int... ranks) {
        for (int rank : ranks) {
            coordinator.onStartRank(RUN, rank, now);
        }
        did();
        coordinator.onGathered(RUN, now);
        return did();
    }

    CoordinatedCluster sees(int rank, String process) {
        coordinator.onPlaced(RUN, rank, process, now);
        return did();
    }

    /** The supervisor wants drivers where there are none. */
    CoordinatedCluster wantsDrivers(String... gone) {
        coordinator.onRestartLink(RUN, Set.of(gone), now);
        return did();
    }

    CoordinatedCluster stops() {
        coordinator.onStop(RUN, now);
        return did();
    }

    /** So much time passes; everybody is told of it each second. */
    CoordinatedCluster waits(Duration span) {
        for (long second = 0; second < span.toSeconds(); second++) {
            now += Duration.ofSeconds(1).toNanos();
            coordinator.onTick(members, now);
        }
        return did();
    }

    // ---- what came of it --------------------------------------------------------------------

    List<ClusterEffect> effects() {
        return List.copyOf(effects);
    }

    <T extends ClusterEffect> List<T> of(Class<T> kind) {
        return effects.stream().filter(kind::isInstance).map(kind::cast).toList();
    }

    /** What the run's supervisor was told, without the words that are said again and again. */
    List<PipelineSupervisor.Command> toldSupervisor() {
        return of(ClusterEffect.TellSupervisor.class).stream()
                .map(ClusterEffect.TellSupervisor::command)
                .filter(command -> !(command instanceof PipelineSupervisor.NoRoom))
                .toList();
    }

    boolean saysThatThereIsNoRoom() {
        return of(ClusterEffect.TellSupervisor.class).stream()
                .map(ClusterEffect.TellSupervisor::command)
                .anyMatch(PipelineSupervisor.NoRoom.class::isInstance);
    }

    /** Ranks that the supervisor was told to move, each time. */
    List<Set<Integer>> moves() {
        return toldSupervisor().stream()
                .filter(PipelineSupervisor.Move.class::isInstance)
                .map(move -> ((PipelineSupervisor.Move) move).ranks())
                .toList();
    }

    CoordinatedCluster recovers() {
        coordinator.onRecovering(RUN, 2, "a node died", now);
        return did();
    }

    CoordinatedCluster recovered(long fromStep) {
        coordinator.onRecovered(RUN, fromStep, now);
        return did();
    }

    boolean isSupervised() {
        return !of(ClusterEffect.Supervise.class).isEmpty();
    }

    /** Nodes that were told to host ranks, in order: {@code a[0, 1]}. */
    List<String> hosting() {
        return of(ClusterEffect.HostRanks.class).stream()
                .map(host -> place(host.node()) + host.ranks())
                .toList();
    }

    List<String> opened() {
        return of(ClusterEffect.OpenShare.class).stream().map(open -> place(open.node())).toList();
    }

    List<String> closed() {
        return of(ClusterEffect.CloseShare.class).stream()
                .map(close -> place(close.node()))
                .toList();
    }

    private static String place(String address) {
        return address.substring(address.indexOf('@') + 1, address.lastIndexOf(':'));
    }

    CoordinatedCluster forget() {
        effects.clear();
        return this;
    }

    RunStanding standing(String run) {
        return coordinator.standing(run).orElseThrow();
    }

    RunStanding standing() {
        return standing(RUN);
    }
}
