package dev.penstock.actors.supervisor;

import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.spi.CheckpointStore.ShardFile;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletionException;

/** Collects the parts of a checkpoint of all ranks that take part. */
final class SaveRound {
    private final int ranks;
    private final long step;
    private final int epoch;
    private final long startNanos;
    private final BitSet answered = new BitSet();
    private final List<ShardFile> files = new ArrayList<>();
    private final List<String> failures = new ArrayList<>();

    SaveRound(RankTable ranks, long step, int epoch, long startNanos) {
        this.ranks = ranks.present();
        this.step = step;
        this.epoch = epoch;
        this.startNanos = startNanos;
    }

    long step() {
        return step;
    }

    int epoch() {
        return epoch;
    }

    long startNanos() {
        return startNanos;
    }

    /** Takes a written part; true when it was the last answer missing. */
    boolean saved(RankEvent.Saved saved) {
        if (!answered.get(saved.rank())) {
            files.addAll(saved.files());
        }
        return answer(saved.rank());
    }

    /** Takes a failure; true when it was the last answer missing. */
    boolean failed(RankEvent.SaveFailed failed) {
        failures.add("rank %d: %s".formatted(failed.rank(), failed.reason()));
        return answer(failed.rank());
    }

    private boolean answer(int rank) {
        answered.set(rank);
        return answered.cardinality() == ranks;
    }

    boolean lacks(int rank) {
        return !answered.get(rank);
    }

    /** All failures in one sentence. */
    Optional<String> failure() {
        return failures.isEmpty() ? Optional.empty() : Optional.of(String.join("; ", failures));
    }

    List<ShardFile> files() {
        return files.stream()
                .sorted(Comparator.comparingInt(ShardFile::stage).thenComparing(ShardFile::file))
                .toList();
    }

    long bytes() {
        return files.stream().mapToLong(ShardFile::bytes).sum();
    }

    static String reason(Throwable error) {
        Throwable cause =
                error instanceof CompletionException && error.getCause() != null
                        ? error.getCause()
                        : error;
        return String.valueOf(cause.getMessage());
    }
}
