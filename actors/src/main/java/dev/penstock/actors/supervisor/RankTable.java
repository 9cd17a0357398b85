package dev.penstock.actors.supervisor;

import akka.actor.typed.ActorRef;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.shard.RankActivity;
import dev.penstock.actors.shard.RankEvent;
import dev.penstock.actors.shard.RankOrder;
import dev.penstock.actors.stage.StageActor;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** What the supervisor knows of every rank. Not thread-safe: the supervisor's own. */
final class RankTable {
    /** One rank. */
    static final class Row {
        private final int rank;
        private @Nullable NodeInfo node;
        private @Nullable ActorRef<StageActor.Command> stage;
        private RankEvent.@Nullable Opened opened;
        private @Nullable RankActivity activity;
        private long heardNanos = System.nanoTime();
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

    RankTable(int ranks) {
        rows = IntStream.range(0, ranks).mapToObj(Row::new).toArray(Row[]::new);
    }

    List<Row> rows() {
        return Arrays.asList(rows);
    }

    void placed(int rank, NodeInfo node) {
        rows[rank].node = node;
        heardFrom(rank);
    }

    void hosted(int rank, ActorRef<StageActor.Command> stage) {
        rows[rank].stage = stage;
        heardFrom(rank);
    }

    void opened(RankEvent.Opened opened) {
        rows[opened.rank()].opened = opened;
    }

    void heardFrom(int rank) {
        rows[rank].heardNanos = System.nanoTime();
    }

    /** As if every rank had just been heard from. */
    void renewLeases() {
        for (Row row : rows) {
            heardFrom(row.rank);
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
        rows[rank].stage = null;
    }

    void tellAll(RankOrder order) {
        for (Row row : rows) {
            tell(row.rank, order);
        }
    }

    /** Tells a rank that is hosted and not stopped. */
    void tell(int rank, RankOrder order) {
        Row row = rows[rank];
        if (row.stage != null && !row.stopped) {
            row.stage.tell(new StageActor.Order(order));
        }
    }

    boolean allOpen() {
        return Arrays.stream(rows).allMatch(row -> row.stage != null && row.opened != null);
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
                .filter(row -> row.opened == null || row.stage == null)
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
