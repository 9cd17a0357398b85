package dev.penstock.actors.simulation;

import dev.penstock.actors.spi.CheckpointStore;
import dev.penstock.actors.spi.DamagedCheckpointException;
import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.RankPlace;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.TreeMap;

/**
 * Checkpoints of all processes, as bits by stage. A set that was not published is none; one that
 * was may be damaged later, which whoever reads it sees.
 */
final class SimDisk implements CheckpointStore {
    /** What is written of a checkpoint, apart for each epoch. */
    private record Part(long step, int epoch) {}

    private final World world;
    private final int stages;
    private final Map<Part, Map<Integer, Long>> written = new HashMap<>();
    private final TreeMap<Long, Map<Integer, Long>> published = new TreeMap<>();
    private final Map<Long, Integer> damagedStages = new HashMap<>();
    private int writesThatFail;
    private int publicationsThatFail;

    SimDisk(World world, int stages) {
        this.world = world;
        this.stages = stages;
    }

    void fillUp() {
        writesThatFail++;
    }

    void tear() {
        publicationsThatFail++;
    }

    /** A bit of the newest checkpoint flips, in one of its files. */
    void damage() {
        if (!published.isEmpty()) {
            damagedStages.put(published.lastKey(), world.random.nextInt(stages));
        }
    }

    @Override
    public ShardFile writeShard(
            long step, int epoch, int stage, RankPlace place, List<NamedTensor> state) {
        if (writesThatFail > 0) {
            writesThatFail--;
            throw new IllegalStateException("No space left on device");
        }
        written.computeIfAbsent(new Part(step, epoch), _ -> new HashMap<>())
                .put(stage, SimStage.bits(state));
        return new ShardFile(stage, "stage-" + stage, 8, "00");
    }

    @Override
    public void publish(long step, int epoch, List<ShardFile> shards) {
        if (publicationsThatFail > 0) {
            publicationsThatFail--;
            throw new IllegalStateException("torn");
        }
        Map<Integer, Long> set = written.getOrDefault(new Part(step, epoch), Map.of());
        if (shards.size() != stages || set.size() != stages) {
            world.violated("checkpoint %d published with %s of %s", step, set.keySet(), shards);
        }
        published.put(step, Map.copyOf(set));
        damagedStages.remove(step);
    }

    @Override
    public void abandon(long step, int epoch) {
        written.remove(new Part(step, epoch));
    }

    @Override
    public OptionalLong newestBefore(long step) {
        Long older = published.lowerKey(step);
        return older == null ? OptionalLong.empty() : OptionalLong.of(older);
    }

    long bits(long step, int stage) {
        Map<Integer, Long> set = published.get(step);
        if (set == null) {
            world.violated("a rank starts from checkpoint %d, which was never published", step);
            throw new IllegalStateException("no checkpoint after step " + step);
        }
        if (Objects.equals(damagedStages.get(step), stage)) {
            throw new DamagedCheckpointException(
                    "step-%06d/stage-%d.safetensors: damaged".formatted(step, stage),
                    new IllegalStateException("damaged"));
        }
        return set.getOrDefault(stage, 0L);
    }

    /** The newest complete set; -1 if there is none. */
    long newest() {
        return published.isEmpty() ? -1 : published.lastKey();
    }

    Map<Long, Map<Integer, Long>> published() {
        return published;
    }
}
