package dev.penstock.actors.supervisor;

import dev.penstock.actors.dataplane.PeerAddress;
import dev.penstock.actors.node.HostedRank;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.rank.LocationDigests;
import dev.penstock.actors.rank.RankActivity;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.spi.PlanRevision;
import dev.penstock.actors.spi.RunPlan;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * What the coordinator knows of every rank. A rank lives on a node from {@link #placed} until it is
 * {@link #vacate}d; then another node may get it, in a later epoch. One that is absent from the
 * plan that the run follows lives nowhere, and nobody waits for it.
 */
final class RankTable {
    /** One rank. */
    static final class Row {
        private final int rank;
        private @Nullable NodeInfo node;
        private RankEvent.@Nullable Opened opened;

        /** What it held of all locations when it last prepared. */
        private LocationDigests heldLocations = LocationDigests.NONE;

        private @Nullable RankActivity activity;
        private boolean hosted;
        private boolean stopped;
        private boolean silent;

        /** Whether its lease was renewed without a word from it since. */
        private boolean renewed;

        /** Whether another supervisor hosted it, and it has not spoken to this one yet. */
        private boolean found;

        /** The epoch in which it was hosted. */
        private int birth;

        /** What it says of this epoch and later ones is heard. */
        private int born;

        private long heardNanos;
        private long activityNanos;

        private Row(int rank) {
            this.rank = rank;
        }

        int rank() {
            return rank;
        }

        @Nullable RankActivity activity() {
            return activity;
        }

        /** Whether the rank was inside an op when it last spoke. */
        boolean works() {
            return activity != null && activity.state().isWork();
        }

        /** For how long the rank has been at its activity, as far as is known. */
        long sinceNanos(RankActivity at, long now) {
            return at.sinceNanos() + Math.max(0, now - activityNanos);
        }
    }

    private final Row[] rows;
    private int epoch = 1;
    private RunPlan plan;
    private BitSet absent;

    /** Answers that each of all orders needs; empty since a rank came to a node or left it. */
    private Optional<Map<Integer, PeerAddress>> addresses = Optional.empty();

    private Optional<List<Integer>> homes = Optional.empty();

    RankTable(RunPlan plan) {
        rows = IntStream.range(0, plan.ranks()).mapToObj(Row::new).toArray(Row[]::new);
        this.plan = plan;
        this.absent = absent(plan);
    }

    private static BitSet absent(RunPlan plan) {
        var absent = new BitSet();
        plan.absent().forEach(absent::set);
        return absent;
    }

    /** Of every rank that takes part, rising. */
    List<Row> rows() {
        return Arrays.stream(rows).filter(row -> !isAbsent(row.rank)).toList();
    }

    int size() {
        return rows.length;
    }

    /** The run's epoch: counts its recoveries, from 1. */
    int epoch() {
        return epoch;
    }

    void enter(int newEpoch) {
        epoch = newEpoch;
    }

    /** The plan of the run that the ranks follow from now on. */
    void follow(RunPlan other) {
        plan = other;
        absent = absent(other);
        moved();
    }

    /** The plan that the ranks follow. */
    RunPlan plan() {
        return plan;
    }

    /** Of the plan that ranks follow: stages of another one are of no use to it. */
    String layout() {
        return plan.layout();
    }

    /** Whether stages may stay as they are when the run follows this plan, a later one. */
    boolean canTakeOver(RunPlan later) {
        return later.revision().number() > plan.revision().number()
                && later.layout().equals(plan.layout());
    }

    PlanRevision revision() {
        return plan.revision();
    }

    /** Whether a rank takes no part, by the plan that is followed. */
    boolean isAbsent(int rank) {
        return absent.get(rank);
    }

    /** How many ranks take part. */
    int present() {
        return rows.length - absent.cardinality();
    }

    // ---- what became of a rank ------------------------------------------------------------------

    void placed(int rank, NodeInfo node, long now) {
        rows[rank].node = node;
        moved();
        rows[rank].birth = epoch;
        rows[rank].born = epoch;
        heardFrom(rank, now);
    }

    /** A rank that another supervisor hosted; it speaks to this one when it has been told to. */
    void found(HostedRank hosted, NodeInfo node, long now) {
        placed(hosted.rank(), node, now);
        rows[hosted.rank()].birth = hosted.birthEpoch();
        rows[hosted.rank()].hosted = true;
        rows[hosted.rank()].found = true;
    }

    void hosted(int rank, long now) {
        rows[rank].hosted = true;
        heardFrom(rank, now);
    }

    void opened(RankEvent.Opened opened) {
        rows[opened.rank()].opened = opened;
    }

    /** It came back from a recovery, and says again what it is. */
    void resumed(RankEvent.Resumed resumed) {
        opened(
                new RankEvent.Opened(
                        resumed.rank(), resumed.epoch(), resumed.device(), resumed.fingerprint()));
    }

    void prepared(RankEvent.Prepared prepared) {
        Row row = rows[prepared.rank()];
        row.found = false;
        row.heldLocations = prepared.locations();
    }

    void heardFrom(int rank, long now) {
        rows[rank].heardNanos = now;
        rows[rank].silent = false;
        rows[rank].renewed = false;
    }

    /**
     * As if every rank had just been heard from, except those whose lease was renewed like this
     * before and that have said nothing since.
     */
    void renewLeases(long now) {
        for (Row row : rows) {
            if (!row.renewed) {
                row.heardNanos = now;
                row.renewed = true;
            }
        }
    }

    void activity(int rank, RankActivity activity, long now) {
        rows[rank].activity = activity;
        rows[rank].activityNanos = now;
    }

    void silent(int rank) {
        rows[rank].silent = true;
    }

    void stopped(int rank) {
        rows[rank].stopped = true;
    }

    /** The rank is nowhere any more; what is still heard of it comes from the past. */
    void vacate(int rank) {
        Row gone = rows[rank];
        rows[rank] = new Row(rank);
        moved();
        rows[rank].born = epoch + 1;
        rows[rank].heardNanos = gone.heardNanos;
    }

    private void moved() {
        addresses = Optional.empty();
        homes = Optional.empty();
    }

    // ---- questions ------------------------------------------------------------------------------

    /** Whether an event comes from where the rank lives now, and not from where it once did. */
    boolean isAlive(RankEvent event) {
        Row row = rows[event.rank()];
        return row.node != null && event.epoch() >= row.born;
    }

    /** Whether a node's answer is about where the rank was placed last. */
    boolean isPlaced(int rank, int birthEpoch) {
        return rows[rank].node != null && rows[rank].birth == birthEpoch;
    }

    /** Whether this one, of all that there may be of a rank, is where the run has it. */
    boolean isTheOne(HostedRank hosted, NodeInfo node) {
        Row row = rows[hosted.rank()];
        return node.equals(row.node) && row.birth == hosted.birthEpoch();
    }

    /**
     * Ranks that were sent to a node and that are not among those that it hosts: found there, or
     * silent since, or never begun, because the order was lost. Of another one the node may not
     * have known yet when it said so.
     *
     * @param heard the epoch that the node has heard of: it takes no rank of one before
     */
    List<Integer> lostAgain(NodeInfo node, int heard, List<HostedRank> hosted) {
        return where(
                row ->
                        (row.found || (row.hosted ? row.silent : row.birth < heard))
                                && node.equals(row.node)
                                && hosted.stream()
                                        .noneMatch(
                                                each ->
                                                        isTheOne(each, node)
                                                                && each.rank() == row.rank));
    }

    /** Whether the rank was placed in this epoch. */
    boolean isBornNow(int rank) {
        return rows[rank].birth == epoch;
    }

    /** Whether the rank was inside an op when it last spoke. */
    boolean works(int rank) {
        return rows[rank].works();
    }

    /** Whether an order would reach this rank. */
    boolean listens(int rank) {
        return rows[rank].hosted && !rows[rank].stopped;
    }

    boolean isSilent(int rank) {
        return rows[rank].silent;
    }

    /** Whether the rank, where it lives now, has ever opened its links. */
    boolean isOpen(int rank) {
        return rows[rank].opened != null;
    }

    /** What the rank held of all locations when it last prepared; nothing if it never did. */
    LocationDigests heldLocations(int rank) {
        return rows[rank].heldLocations;
    }

    boolean hasNode(int rank) {
        return rows[rank].node != null;
    }

    Optional<NodeInfo> node(int rank) {
        return Optional.ofNullable(rows[rank].node);
    }

    /**
     * Where the process of each rank that takes part is reached, by rank; empty if not all say so:
     * then all use one media driver.
     */
    Map<Integer, PeerAddress> addresses() {
        Map<Integer, PeerAddress> known = addresses.orElseGet(this::findAddresses);
        addresses = Optional.of(known);
        return known;
    }

    private Map<Integer, PeerAddress> findAddresses() {
        Map<Integer, PeerAddress> said = new TreeMap<>();
        for (Row row : rows) {
            Optional.ofNullable(row.node)
                    .flatMap(NodeInfo::address)
                    .ifPresent(address -> said.put(row.rank, address));
        }
        return said.size() == present() ? said : Map.of();
    }

    /** By rank, the lowest rank that lives in the same process; of one that has none, itself. */
    List<Integer> homes() {
        List<Integer> known = homes.orElseGet(this::findHomes);
        homes = Optional.of(known);
        return known;
    }

    private List<Integer> findHomes() {
        Map<String, Integer> lowest = new HashMap<>();
        List<Integer> found = new ArrayList<>();
        for (Row row : rows) {
            found.add(
                    row.node == null
                            ? row.rank
                            : lowest.computeIfAbsent(row.node.process(), _ -> row.rank));
        }
        return List.copyOf(found);
    }

    /** Whether any rank has a node. */
    boolean anyLives() {
        return Arrays.stream(rows).anyMatch(row -> row.node != null);
    }

    /** Whether any rank lives in a process. */
    boolean livesIn(String process) {
        return Arrays.stream(rows)
                .anyMatch(row -> row.node != null && row.node.process().equals(process));
    }

    /** The ranks that live on a node. */
    List<Integer> on(NodeInfo node) {
        return where(row -> node.equals(row.node));
    }

    private List<Integer> where(Predicate<Row> wanted) {
        List<Integer> found = new ArrayList<>();
        for (Row row : rows) { // several times per tick: a stream costs more than the question
            if (wanted.test(row)) {
                found.add(row.rank);
            }
        }
        return found;
    }

    boolean allOpen() {
        return Arrays.stream(rows)
                .allMatch(row -> (row.hosted && row.opened != null) || isAbsent(row.rank));
    }

    /** Ranks that were never placed have nothing to stop. */
    boolean allStopped() {
        return Arrays.stream(rows).allMatch(row -> row.stopped || row.node == null);
    }

    /** Whether all that have not stopped had said nothing for a lease. */
    boolean onlySilentOnesLeft() {
        return Arrays.stream(rows).allMatch(row -> row.stopped || row.node == null || row.silent);
    }

    /** Ranks on nodes that said nothing for a lease and were not known to be silent. */
    List<Integer> newlySilent(long now, Duration lease) {
        return where(
                row ->
                        row.node != null
                                && !row.stopped
                                && !row.silent
                                && now - row.heardNanos > lease.toNanos());
    }

    long silentNanos(int rank, long now) {
        return now - rows[rank].heardNanos;
    }

    // ---- words ----------------------------------------------------------------------------------

    /** {@code rank 1 (node worker-1, pid 4711)}. */
    String name(int rank) {
        NodeInfo node = rows[rank].node;
        return node == null
                ? "rank " + rank
                : "rank %d (node %s, pid %d)".formatted(rank, node.name(), node.pid());
    }

    /** Which ranks are not open, and why. */
    String missing() {
        return Arrays.stream(rows)
                .filter(row -> (row.opened == null || !row.hosted) && !isAbsent(row.rank))
                .map(row -> name(row.rank) + (row.node == null ? " has no node" : " is opening"))
                .collect(Collectors.joining(", "));
    }

    /** Which ranks have not said that they stopped. */
    String notStopped() {
        return Arrays.stream(rows)
                .filter(row -> row.node != null && !row.stopped)
                .map(row -> name(row.rank))
                .collect(Collectors.joining(", "));
    }

    /** That a rank's lease ran out. */
    String silence(int rank, long now, Duration lease) {
        RankActivity activity = rows[rank].activity;
        return "%s has been silent for %.1f s (lease %.1f s); last seen: %s"
                .formatted(
                        name(rank),
                        silentNanos(rank, now) / 1e9,
                        lease.toMillis() / 1e3,
                        activity == null ? "nothing" : activity.text());
    }

    /** Descriptions by rank; all ranks that take part must be open. */
    List<String> devices() {
        return Arrays.stream(rows)
                .map(row -> row.opened == null ? "absent" : row.opened.device())
                .toList();
    }

    /** The kernels' fingerprint; all ranks that take part must be open. */
    String fingerprint() {
        return fingerprints().getFirst();
    }

    private List<String> fingerprints() {
        return Arrays.stream(rows)
                .filter(row -> !isAbsent(row.rank))
                .map(row -> Objects.requireNonNull(row.opened).fingerprint())
                .toList();
    }

    /** Different kernels give different bits; says which rank has which. */
    Optional<String> mixedFingerprints() {
        List<String> all = fingerprints();
        if (all.stream().distinct().count() == 1) {
            return Optional.empty();
        }
        return Optional.of(
                "the ranks' kernels differ, so loss bits would too: expected one fingerprint, got "
                        + all);
    }
}
