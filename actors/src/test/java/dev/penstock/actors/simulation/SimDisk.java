package dev.penstock.actors.simulation;

import dev.penstock.actors.spi.CheckpointStore;
import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.RankPlace;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Checkpoints of all processes, as bits by stage. A set that was not published is none. */
final class SimDisk implements CheckpointStore {
    private final World world;
    private final int stages;
    private final Map<Long, Map<Integer, Long>> written = new HashMap<>();
    private final Map<Long, Map<Integer, Long>> published = new HashMap<>();
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

    @Override
    public ShardFile writeShard(long step, int stage, RankPlace place, List<NamedTensor> state) {
        if (writesThatFail > 0) {
            writesThatFail--;
            throw new IllegalStateException("No space left on device");
        }
        written.computeIfAbsent(step, _ -> new HashMap<>()).put(stage, SimStage.bits(state));
        return new ShardFile(stage, "stage-" + stage, 8, "00");
    }

    @Override
    public void publish(long step, List<ShardFile> shards) {
        if (publicationsThatFail > 0) {
            publicationsThatFail--;
            throw new IllegalStateException("torn");
        }
        Map<Integer, Long> set = written.getOrDefault(step, Map.of());
        if (shards.size() != stages || set.size() != stages) {
            world.violated("checkpoint %d published with %s of %s", step, set.keySet(), shards);
        }
        published.put(step, Map.copyOf(set));
    }

    @Override
    public void abandon(long step) {
        written.remove(step);
    }

    long bits(long step, int stage) {
        Map<Integer, Long> set = published.get(step);
        if (set == null) {
            world.violated("a rank starts from checkpoint %d, which was never published", step);
            throw new IllegalStateException("no checkpoint after step " + step);
        }
        return set.getOrDefault(stage, 0L);
    }

    /** The newest complete set; -1 if there is none. */
    long newest() {
        return published.keySet().stream().mapToLong(Long::longValue).max().orElse(-1);
    }

    Map<Long, Map<Integer, Long>> published() {
        return published;
    }
}
