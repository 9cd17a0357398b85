package dev.penstock.actors.cluster;

import dev.penstock.actors.supervisor.PipelineSupervisor;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.stream.Collectors;

/**
 * On which nodes one run has a share, which ranks live there, and who has a host's media driver.
 * Has nodes told what follows from it:
 *
 * <pre>
 *   a rank gets a node --no share there--> OpenShare --RunOpened--> HostRanks --RanksHosted-->
 *                      --share is open----------------------------> HostRanks --RanksHosted-->
 * </pre>
 *
 * The first share of a host starts the host's driver.
 */
final class RunShares {
    /** A node's share of the run. */
    private static final class Share {
        final NodeOffer node;
        final Set<Integer> toHost = new TreeSet<>();
        boolean open;

        Share(NodeOffer node) {
            this.node = node;
        }
    }

    /**
     * A host's driver.
     *
     * @param owner address of the node that started it; empty if it died and none starts another
     * @param directory empty while it starts
     * @param former directory of the one whose place it takes; empty if it is the host's first
     * @param awaited whether the supervisor waits for it
     * @param doubtful address of a node that did not say that its driver died, and may be dead, too
     */
    private record Driver(
            String owner,
            Optional<String> directory,
            String former,
            boolean awaited,
            String doubtful) {
        static Driver first(String owner) {
            return new Driver(owner, Optional.empty(), "", false, "");
        }

        Driver died() {
            return new Driver("", Optional.empty(), directory.orElse(former), true, "");
        }

        Driver diedUntold() {
            return new Driver("", Optional.empty(), directory.orElse(former), true, owner);
        }

        Driver startedAgainBy(String next) {
            return new Driver(next, Optional.empty(), former, true, "");
        }

        Driver isIn(String place) {
            return new Driver(owner, Optional.of(place), former, false, "");
        }
    }

    private final String run;
    private final Consumer<ClusterEffect> out;
    private final UnansweredOrders orders;
    private final Map<String, Share> shares = new LinkedHashMap<>();
    private final Map<Integer, NodeOffer> homes = new TreeMap<>();
    private final Map<String, Driver> drivers = new HashMap<>();

    /**
     * Seconds since nodes, by address, were to let go of the run or were lost: until one says that
     * nothing of it is there, the word may be lost, or the loss no death.
     */
    private final Map<String, Integer> left = new TreeMap<>();

    private Optional<RunKey> key;
    private boolean hosting;

    /**
     * @param key of a run that nobody has begun
     */
    RunShares(String run, Optional<RunKey> key, Consumer<ClusterEffect> out) {
        this.run = run;
        this.key = key;
        this.out = out;
        this.orders = new UnansweredOrders(out);
    }

    /**
     * A second has passed.
     *
     * @param mayLetGo whether the node at an address is there, and is not asked what it has
     */
    void onTick(Predicate<String> mayLetGo) {
        orders.onTick();
        left.replaceAll((_, seconds) -> seconds + 1);
        left.forEach(
                (node, seconds) -> {
                    if (seconds % UnansweredOrders.SECONDS == 0 && mayLetGo.test(node)) {
                        out.accept(new ClusterEffect.CloseShare(run, node));
                    }
                });
    }

    /**
     * A node is at this address again, perhaps the same one: it is to let go, as others may take
     * the room.
     */
    void cameBack(String address) {
        if (left.containsKey(address)) {
            close(address);
        }
    }

    /** Nothing of the run is at this address. */
    void absent(String address) {
        left.remove(address);
    }

    /** Whether a node says for the first time what came of an order that still holds. */
    boolean isAwaited(ClusterNode.Answer answer) {
        return orders.answered(answer.node(), answer.order());
    }

    // ---- what is there ----------------------------------------------------------------------

    /** The node of each rank that has one. */
    Map<Integer, NodeOffer> homes() {
        return Collections.unmodifiableMap(homes);
    }

    Map<Integer, String> addresses() {
        Map<Integer, String> addresses = new TreeMap<>();
        homes.forEach((rank, node) -> addresses.put(rank, node.address()));
        return addresses;
    }

    int nodes() {
        return (int) homes.values().stream().distinct().count();
    }

    boolean isAt(String address) {
        return shares.containsKey(address);
    }

    /** Whether frames between hosts are sealed with a key. */
    boolean isSealed() {
        return key.isPresent();
    }

    /** Whether nodes of this host have shares. */
    boolean isOn(String host) {
        return shares.values().stream().anyMatch(share -> share.node.host().equals(host));
    }

    boolean isAnywhere() {
        return !shares.isEmpty();
    }

    /** The ranks that live on a node, or are to. */
    Set<Integer> ranksAt(String address) {
        return homes.entrySet().stream()
                .filter(home -> home.getValue().address().equals(address))
                .map(Map.Entry::getKey)
                .collect(Collectors.toCollection(TreeSet::new));
    }

    /** The node of that process, if the run has a share there. */
    Optional<NodeOffer> node(String process) {
        return shares.values().stream()
                .map(share -> share.node)
                .filter(node -> node.process().equals(process))
                .findFirst();
    }

    /** How people know the node at an address. */
    String name(String address) {
        Share share = shares.get(address);
        return share == null ? address : share.node.text();
    }

    boolean allOpen() {
        return shares.values().stream().allMatch(share -> share.open);
    }

    /** Nodes that build their share still. */
    List<String> opening() {
        return shares.values().stream()
                .filter(share -> !share.open)
                .map(share -> share.node.text())
                .toList();
    }

    /** Addresses of shares where no rank is, or is to be, and whose driver no other share uses. */
    List<String> unused() {
        return shares.values().stream()
                .filter(share -> share.open && share.toHost.isEmpty())
                .map(share -> share.node)
                .filter(node -> !homes.containsValue(node))
                .filter(node -> !hasDriver(node.address()) || isAlone(node))
                .map(NodeOffer::address)
                .toList();
    }

    private boolean isAlone(NodeOffer node) {
        return shares.values().stream()
                .allMatch(
                        other -> other.node.equals(node) || !other.node.host().equals(node.host()));
    }

    /** Whether the host's driver lives with this node, or is being started by it. */
    boolean hasDriver(String address) {
        return drivers.values().stream().anyMatch(driver -> driver.owner().equals(address));
    }

    /** Whether the host's driver is being started by this node. */
    boolean awaitsDriverOf(String address) {
        return drivers.values().stream()
                .anyMatch(driver -> driver.owner().equals(address) && driver.directory().isEmpty());
    }

    /** Whether the supervisor waits for a driver that some node starts, or will. */
    boolean awaitsDrivers() {
        return drivers.values().stream().anyMatch(Driver::awaited);
    }

    /** Whether that is the driver which lives with the node, and not one before it. */
    boolean isDriverOf(String address, String directory) {
        return drivers.values().stream()
                .anyMatch(
                        driver ->
                                driver.owner().equals(address)
                                        && driver.directory().isPresent()
                                        && !driver.former().equals(directory));
    }

    /** Directory of the host's driver, or of its last one if that died. */
    Optional<String> lastDriverOn(String host) {
        return Optional.ofNullable(drivers.get(host))
                .map(driver -> driver.directory().orElse(driver.former()))
                .filter(directory -> !directory.isEmpty());
    }

    /** Whether a host's driver went with the node that had started it. */
    boolean lacksDriver() {
        return drivers.values().stream().anyMatch(driver -> driver.owner().isEmpty());
    }

    // ---- ranks get nodes --------------------------------------------------------------------

    void place(Map<Integer, NodeOffer> ranks) {
        homes.putAll(ranks);
        ranks.forEach((rank, node) -> share(node).toHost.add(rank));
        host();
    }

    private Share share(NodeOffer node) {
        Share known = shares.get(node.address());
        if (known != null) {
            return known;
        }
        boolean starts = !drivers.containsKey(node.host());
        if (starts) {
            drivers.put(node.host(), Driver.first(node.address()));
        }
        if (hosting) {
            var back = new PipelineSupervisor.NodeBack(node.process());
            out.accept(new ClusterEffect.TellSupervisor(run, back));
        }
        orders.give(new ClusterEffect.OpenShare(run, node.address(), orders.nextNumber(), starts));
        Share fresh = new Share(node);
        shares.put(node.address(), fresh);
        left.remove(node.address()); // what may be there is replaced
        return fresh;
    }

    /** A rank is where nobody sent it: with the holder of its mirror. */
    void moved(int rank, NodeOffer node) {
        homes.put(rank, node);
        shares.values().stream()
                .filter(share -> !share.node.equals(node))
                .forEach(share -> share.toHost.remove(rank)); // its share was still being built
    }

    void opened(ClusterNode.RunOpened opened) {
        Share share = shares.get(opened.node());
        if (share != null) {
            share.open = true;
            if (!opened.driverDirectory().isEmpty()) {
                var _ = driverStarted(opened.node(), opened.driverDirectory());
            }
            host();
        }
    }

    /** From now on, nodes are told to host ranks: a supervisor looks for them. */
    void beginHosting() {
        hosting = true;
        host();
    }

    private void host() {
        for (Share share : shares.values()) {
            Optional<String> driver =
                    Optional.ofNullable(drivers.get(share.node.host())).flatMap(Driver::directory);
            if (hosting && share.open && driver.isPresent() && !share.toHost.isEmpty()) {
                orders.give(
                        new ClusterEffect.HostRanks(
                                run,
                                share.node.address(),
                                orders.nextNumber(),
                                List.copyOf(share.toHost),
                                driver.get(),
                                key));
                share.toHost.clear();
            }
        }
    }

    /** A node is gone or cannot take part; nobody lives there any more. */
    void lost(String address) {
        driverDied(address);
        orders.forget(address);
        if (shares.remove(address) != null) {
            left.put(address, 0);
        }
        homes.values().removeIf(node -> node.address().equals(address));
        Set<String> hosts = new HashSet<>();
        shares.values().forEach(share -> hosts.add(share.node.host()));
        drivers.keySet().retainAll(hosts);
    }

    /** A node lets go of the run. */
    void close(String address) {
        out.accept(new ClusterEffect.CloseShare(run, address));
        left.put(address, 0);
    }

    /** The nodes let go of the run. */
    void close() {
        orders.clear();
        shares.keySet().forEach(this::close);
        shares.clear();
        homes.clear();
        drivers.clear();
        hosting = false;
    }

    // ---- shares of a seed that is gone ------------------------------------------------------

    /** Whether nothing else has taken the place of what is in a share that comes late. */
    boolean fits(NodeOffer node, ClusterNode.ShareKept kept) {
        return homes.keySet().stream().noneMatch(kept.ranks()::contains)
                && !(kept.ownsDriver() && drivers.containsKey(node.host()));
    }

    /**
     * A share that another owner had opened.
     *
     * @param ranks of it that are the run's: a node may have another that was replaced
     */
    void adopt(NodeOffer node, ClusterNode.ShareKept kept, Set<Integer> ranks) {
        Share share = new Share(node);
        share.open = true;
        shares.put(node.address(), share);
        left.remove(node.address());
        ranks.forEach(rank -> homes.put(rank, node));
        kept.key().ifPresent(handed -> key = Optional.of(handed));
        if (kept.ownsDriver()) {
            drivers.put(node.host(), Driver.first(node.address()).isIn(kept.driver()));
        } else {
            drivers.putIfAbsent(node.host(), Driver.first("").isIn(kept.driver()).died());
        }
    }

    // ---- drivers ----------------------------------------------------------------------------

    /**
     * A node started the driver that it was to start.
     *
     * @return the directory of the one whose place it takes; empty if that is another's by now
     */
    Optional<String> driverStarted(String address, String directory) {
        for (Map.Entry<String, Driver> host : drivers.entrySet()) {
            if (host.getValue().owner().equals(address)) {
                String former = host.getValue().former();
                host.setValue(host.getValue().isIn(directory));
                host();
                return Optional.of(former);
            }
        }
        return Optional.empty();
    }

    /**
     * The driver that this node started is gone.
     *
     * @return its directory; empty if there was none yet
     */
    String driverDied(String address) {
        String directory =
                drivers.values().stream()
                        .filter(driver -> driver.owner().equals(address))
                        .flatMap(driver -> driver.directory().stream())
                        .findFirst()
                        .orElse("");
        drivers.replaceAll((_, had) -> had.owner().equals(address) ? had.died() : had);
        return directory;
    }

    /** Drivers in these directories are gone, whether their nodes have said so or not. */
    void driversAreGone(Set<String> directories) {
        drivers.replaceAll(
                (_, had) ->
                        had.directory().filter(directories::contains).isPresent()
                                ? had.diedUntold()
                                : had);
    }

    /**
     * Has a driver started on each host that has lost its own; whether there is any to wait for.
     */
    boolean restartDrivers() {
        boolean any = false;
        for (Share share : shares.values()) {
            NodeOffer node = share.node;
            Driver driver = drivers.get(node.host());
            if (driver != null && driver.owner().isEmpty() && mayStart(node, driver)) {
                drivers.put(node.host(), driver.startedAgainBy(node.address()));
                orders.give(
                        new ClusterEffect.StartDriver(run, node.address(), orders.nextNumber()));
            }
            any |= driver != null && driver.awaited(); // a host's first one comes with its share
        }
        return any;
    }

    private boolean mayStart(NodeOffer node, Driver after) {
        return !node.address().equals(after.doubtful()) || isAlone(node);
    }
}
