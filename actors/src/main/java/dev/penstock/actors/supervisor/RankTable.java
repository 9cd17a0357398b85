package dev.penstock.actors.supervisor;

import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.shard.RankActivity;
import dev.penstock.actors.shard.RankEvent;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** What the coordinator knows of every rank. */
final class RankTable {
    /** One rank. */
    static final class Row {
        private final int rank;
        private @Nullable NodeInfo node;
        private boolean hosted;
        private RankEvent.@Nullable Opened opened;
        private @Nullable RankActivity activity;
        private long heardNanos;
        private boolean stopped;

        private Row(int rank) {
            this.rank = rank;
        }

        int rank() {
            return rank;
        }

        @Nullable RankActivity activity() {
            return activity;
        }
    }

    private final Row[] rows;
    private int epoch = 1;

    RankTable(int ranks) {
        rows = IntStream.range(0, ranks).mapToObj(Row::new).toArray(Row[]::new);
    }

    List<Row> rows() {
        return Arrays.asList(rows);
    }

    int size() {
        return rows.length;
    }

    /** The run's epoch: counts its recoveries, from 1. */
    int epoch() {
        return epoch;
    }

    void placed(int rank, NodeInfo node, long now) {
        rows[rank].node = node;
        heardFrom(rank, now);
    }

    void hosted(int rank, long now) {
        rows[rank].hosted = true;
        heardFrom(rank, now);
    }

    void opened(RankEvent.Opened opened) {
        rows[opened.rank()].opened = opened;
    }

    void heardFrom(int rank, long now) {
        rows[rank].heardNanos = now;
    }

    /** As if every rank had just been heard from. */
    void renewLeases(long now) {
        for (Row row : rows) {
            row.heardNanos = now;
        }
    }

    void activity(int rank, RankActivity activity) {
        rows[rank].activity = activity;
    }

    void stopped(int rank) {
        rows[rank].stopped = true;
    }

    void died(int rank) {
        rows[rank].stopped = true;
        rows[rank].hosted = false;
    }

    /** Whether an order would reach this rank. */
    boolean listens(int rank) {
        return rows[rank].hosted && !rows[rank].stopped;
    }

    boolean allOpen() {
        return Arrays.stream(rows).allMatch(row -> row.hosted && row.opened != null);
    }

    /** Ranks that were never placed have nothing to stop. */
    boolean allStopped() {
        return Arrays.stream(rows).allMatch(row -> row.stopped || row.node == null);
    }

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
                .filter(row -> row.opened == null || !row.hosted)
                .map(row -> name(row.rank) + (row.node == null ? " has no node" : " is opening"))
                .collect(Collectors.joining(", "));
    }

    /** Descriptions by rank; all ranks must be open. */
    List<String> devices() {
        return Arrays.stream(rows).map(row -> Objects.requireNonNull(row.opened).device()).toList();
    }

    /** The kernels' fingerprint; all ranks must be open. */
    String fingerprint() {
        return Objects.requireNonNull(rows[0].opened).fingerprint();
    }

    /** Different kernels give different bits; says which rank has which. */
    Optional<String> mixedFingerprints() {
        List<String> all =
                Arrays.stream(rows)
                        .map(row -> Objects.requireNonNull(row.opened).fingerprint())
                        .toList();
        if (all.stream().distinct().count() == 1) {
            return Optional.empty();
        }
        return Optional.of(
                "the ranks' kernels differ, so loss bits would too: expected one fingerprint, got "
                        + all);
    }

    /** A rank whose lease ran out. */
    Optional<String> silent(long now, Duration lease) {
        return Arrays.stream(rows)
                .filter(row -> now - row.heardNanos > lease.toNanos())
                .findFirst()
                .map(
                        row ->
                                "%s has been silent for %.1f s (lease %.1f s); last seen: %s"
                                        .formatted(
                                                name(row.rank),
                                                (now - row.heardNanos) / 1e9,
                                                lease.toMillis() / 1e3,
                                                row.activity == null
                                                        ? "nothing"
                                                        : row.activity.text()));
    }
}
