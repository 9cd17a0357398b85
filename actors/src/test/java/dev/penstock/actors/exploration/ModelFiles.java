package dev.penstock.actors.exploration;

import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.journal.JournalledRun;
import dev.penstock.actors.supervisor.Effect;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/** What outlives processes: the journal, the parts of checkpoints, and those that are whole. */
final class ModelFiles {
    private List<JournalRecord> journal = List.of();

    /** By step and epoch, what ranks have written of it. */
    private final Map<List<Long>, Map<Integer, List<ModelRank.Update>>> parts = new HashMap<>();

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
        List<JournalRecord> more = new ArrayList<>(journal);
        more.addAll(entries);
        journal = List.copyOf(more);
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
        parts.remove(List.of(step, (long) epoch));
    }

    void publish(ModelWorld world, Effect.Publish publish) {
        Map<Integer, List<ModelRank.Update>> of =
                parts.getOrDefault(List.of(publish.step(), (long) publish.epoch()), Map.of());
        world.require(
                of.size() == ModelWorld.RANKS && of.values().stream().distinct().count() == 1,
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
