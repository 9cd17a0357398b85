package dev.penstock.actors.cluster;

import akka.actor.typed.ActorRef;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.spi.RunPlan;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * On which nodes one run has a share, which ranks live there, and who has a host's media driver.
 * Tells nodes what follows from it:
 *
 * <pre>
 *   a rank gets a node --no share there--> OpenRun --RunOpened--> HostRanks
 *                      --share is open---------------------------> HostRanks
 * </pre>
 *
 * The first share of a host starts the host's driver. Its owner's thread only.
 */
final class RunShares {
    /** A node's share of the run. */
    private static final class Share {
        final NodeInventory.Entry entry;
        final Set<Integer> toHost = new TreeSet<>();
        boolean open;

        Share(NodeInventory.Entry entry) {
            this.entry = entry;
        }
    }

    /**
     * A host's driver.
     *
     * @param owner address of the node that started it; empty if it died and none starts another
     * @param directory empty while it starts
     * @param former directory of the one whose place it takes; empty if it is the host's first
     */
    private record Driver(String owner, Optional<String> directory, String former) {
        Driver died() {
            return new Driver("", Optional.empty(), directory.orElse(former));
        }
    }

    /** One driver took another's place. */
    record DriverMoved(String former, String directory) {}

    private final RunPlan plan;
    private final Path directory;
    private Optional<RunKey> key;
    private final ActorRef<ClusterNode.Report> reports;
    private final Map<String, Share> shares = new LinkedHashMap<>();
    private final Map<Integer, NodeInventory.Entry> homes = new TreeMap<>();
    private final Map<String, Driver> drivers = new HashMap<>();
    private boolean hosting;

    /**
     * @param directory of the run
     * @param reports told by the nodes what becomes of their shares
     */
    RunShares(
            RunPlan plan,
            Path directory,
            Optional<RunKey> key,
            ActorRef<ClusterNode.Report> reports) {
        this.plan = plan;
        this.directory = directory;
        this.key = key;
        this.reports = reports;
    }

    // ---- what is there ----------------------------------------------------------------------

    /** The node of each rank that has one. */
    Map<Integer, NodeInventory.Entry> homes() {
        return Map.copyOf(homes);
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
        return shares.values().stream().anyMatch(share -> share.entry.offer().host().equals(host));
    }

    boolean isAnywhere() {
        return !shares.isEmpty();
    }

    /** The ranks that live on a node, or are to. */
    Set<Integer> ranksAt(String address) {
        Set<Integer> ranks = new TreeSet<>();
        homes.forEach(
                (rank, entry) -> {
                    if (entry.offer().address().equals(address)) {
                        ranks.add(rank);
                    }
                });
        return ranks;
    }

    /** The node of that process, if the run has a share there. */
    Optional<NodeInventory.Entry> node(String name, long pid) {
        return shares.values().stream()
                .map(share -> share.entry)
                .filter(entry -> entry.offer().name().equals(name) && entry.offer().pid() == pid)
                .findFirst();
    }

    /** Where a process that has a share is, as {@link NodeInfo#process} says. */
    Optional<String> addressOf(String process) {
        return shares.values().stream()
                .map(share -> share.entry.offer())
                .filter(offer -> NodeInfo.process(offer.name(), offer.pid()).equals(process))
                .map(NodeOffer::address)
                .findFirst();
    }

    /** How people know the node at an address. */
    String name(String address) {
        Share share = shares.get(address);
        return share == null ? address : share.entry.offer().text();
    }

    /** Nodes that build their share still. */
    List<String> opening() {
        return shares.values().stream()
                .filter(share -> !share.open)
                .map(share -> share.entry.offer().text())
                .toList();
    }

    /** Whether the host's driver lives with this node, or is being started by it. */
    boolean hasDriver(String address) {
        return drivers.values().stream().anyMatch(driver -> driver.owner().equals(address));
    }

    // ---- what happens -----------------------------------------------------------------------

    /** Ranks get nodes. */
    void place(Map<Integer, NodeInventory.Entry> ranks) {
        homes.putAll(ranks);
        ranks.forEach((rank, entry) -> share(entry).toHost.add(rank));
        host();
    }

    private Share share(NodeInventory.Entry entry) {
        NodeOffer offer = entry.offer();
        Share known = shares.get(offer.address());
        if (known != null) {
            return known;
        }
        boolean starts = !drivers.containsKey(offer.host());
        if (starts) {
            drivers.put(offer.host(), new Driver(offer.address(), Optional.empty(), ""));
        }
        entry.node()
                .tell(
                        new ClusterNode.OpenRun(
                                plan.runId(), directory.toString(), plan.hash(), starts, reports));
        Share fresh = new Share(entry);
        shares.put(offer.address(), fresh);
        return fresh;
    }

    /** A share that another owner had opened. */
    void adopt(NodeInventory.Entry entry, ClusterNode.ShareKept kept) {
        NodeOffer offer = entry.offer();
        Share share = new Share(entry);
        share.open = true;
        shares.put(offer.address(), share);
        kept.ranks().forEach(rank -> homes.put(rank, entry));
        kept.key().ifPresent(handed -> key = Optional.of(handed));
        if (kept.ownsDriver()) {
            drivers.put(offer.host(), new Driver(offer.address(), Optional.of(kept.driver()), ""));
        } else {
            drivers.putIfAbsent(offer.host(), new Driver("", Optional.empty(), kept.driver()));
        }
    }

    /** Whether a host's driver went with the node that had started it. */
    boolean lacksDriver() {
        return drivers.values().stream().anyMatch(driver -> driver.owner().isEmpty());
    }

    /** A rank is where nobody sent it: with the holder of its mirror. */
    void moved(int rank, NodeInventory.Entry entry) {
        homes.put(rank, entry);
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

    /** A node started the driver that it was to start; empty if that is another's by now. */
    Optional<DriverMoved> driverStarted(String address, String driverDirectory) {
        for (Map.Entry<String, Driver> host : drivers.entrySet()) {
            if (host.getValue().owner().equals(address)) {
                String former = host.getValue().former();
                host.setValue(new Driver(address, Optional.of(driverDirectory), former));
                host();
                return Optional.of(new DriverMoved(former, driverDirectory));
            }
        }
        return Optional.empty();
    }

    /** From now on, nodes are told to host ranks: a supervisor looks for them. */
    void beginHosting() {
        hosting = true;
        host();
    }

    private void host() {
        for (Share share : shares.values()) {
            Optional<String> driver =
                    Optional.ofNullable(drivers.get(share.entry.offer().host()))
                            .flatMap(Driver::directory);
            if (hosting && share.open && driver.isPresent() && !share.toHost.isEmpty()) {
                share.entry
                        .node()
                        .tell(
                                new ClusterNode.HostRanks(
                                        plan.runId(),
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
        shares.remove(address);
        homes.values().removeIf(entry -> entry.offer().address().equals(address));
        Set<String> hosts = new HashSet<>();
        shares.values().forEach(share -> hosts.add(share.entry.offer().host()));
        drivers.keySet().retainAll(hosts);
    }

    /** The driver that this node started is gone. */
    void driverDied(String address) {
        drivers.replaceAll((_, had) -> had.owner().equals(address) ? had.died() : had);
    }

    /**
     * Has a driver started on each host that has lost its own; whether there is any to wait for.
     */
    boolean restartDrivers() {
        boolean any = false;
        for (Share share : shares.values()) {
            NodeOffer offer = share.entry.offer();
            Driver driver = drivers.get(offer.host());
            if (driver != null && driver.owner().isEmpty()) {
                drivers.put(
                        offer.host(),
                        new Driver(offer.address(), Optional.empty(), driver.former()));
                share.entry.node().tell(new ClusterNode.StartDriver(plan.runId()));
            }
            any |= driver != null && driver.directory().isEmpty();
        }
        return any;
    }

    /** The nodes let go of the run. */
    void close() {
        shares.values()
                .forEach(share -> share.entry.node().tell(new ClusterNode.CloseRun(plan.runId())));
        shares.clear();
        homes.clear();
        drivers.clear();
        hosting = false;
    }
}
