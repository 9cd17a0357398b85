package dev.penstock.actors.exploration;

import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.journal.JournalledRun;
import dev.penstock.actors.supervisor.Effect;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;

/** What outlives processes: the journal, the parts of checkpoints, and those that are whole. */
final class ModelFiles {
    /** The last record, and the least that says what all before it did: its order is its own. */
    private List<JournalRecord> journal = List.of();

    /** By step and epoch, what ranks have written of it. */
    private final Map<List<Long>, Map<Integer, List<ModelRank.Update>>> parts = new HashMap<>();

    private final Set<List<Long>> abandoned = new HashSet<>();

    private final Map<Long, List<ModelRank.Update>> checkpoints = new TreeMap<>();

    /** The run as the journal has it, without its last records. */
    Optional<JournalledRun> run(int lost) {
        return lost > journal.size()
                ? Optional.empty()
                : JournalledRun.of(journal.subList(0, journal.size() - lost));
    }

    /** The step whose state all ranks are to have. */
    long commit() {
        return run(0).orElseThrow().applied();
    }

    void write(List<JournalRecord> entries) {
        for (JournalRecord entry : entries) {
            List<JournalRecord> more =
                    new ArrayList<>(run(0).map(JournalledRun::records).orElse(List.of()));
            more.add(entry);
            journal = List.copyOf(more);
        }
    }

    /** The last records never reached the disk. */
    void lose(int records) {
        journal = List.copyOf(journal.subList(0, journal.size() - records));
    }

    void writePart(ModelRank rank, long step) {
        parts.computeIfAbsent(List.of(step, (long) rank.epoch()), _ -> new TreeMap<>())
                .put(rank.rank, rank.applied());
    }

    void abandon(long step, int epoch) {
        abandoned.add(List.of(step, (long) epoch));
    }

    void publish(ModelWorld world, Effect.Publish publish) {
        List<Long> key = List.of(publish.step(), (long) publish.epoch());
        Map<Integer, List<ModelRank.Update>> of = parts.getOrDefault(key, Map.of());
        world.require(
                !abandoned.contains(key)
                        && of.size() == ModelWorld.RANKS
                        && of.values().stream().distinct().count() == 1,
                "a checkpoint of step %d is made of %s",
                publish.step(),
                of);
        if (!of.isEmpty()) {
            checkpoints.put(publish.step(), of.values().iterator().next());
        }
    }

    /** The state that a checkpoint has; empty if there is no such checkpoint. */
    Optional<List<ModelRank.Update>> checkpoint(long step) {
        return Optional.ofNullable(checkpoints.get(step));
    }

    long newestCheckpoint() {
        return checkpoints.keySet().stream().max(Long::compare).orElse(JournalledRun.NONE);
    }
}
