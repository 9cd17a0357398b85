package dev.penstock.actors.simulation;

import dev.penstock.actors.spi.CheckpointStore;
import dev.penstock.actors.spi.DamagedCheckpointException;
import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.RankPlace;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.TreeMap;

/**
 * Checkpoints of all processes, as bits by the first rank that has them. A set that was not
 * published is none; one that was may be damaged later, which whoever reads it sees.
 */
final class SimDisk implements CheckpointStore {
    /** What is written of a checkpoint, apart for each epoch. */
    private record Set(long step, int epoch) {}

    private final World world;
    private final Scenario scenario;
    private final Map<Set, Map<Integer, ByteBuffer>> written = new HashMap<>();
    private final TreeMap<Long, Map<Integer, ByteBuffer>> published = new TreeMap<>();
    private final Map<Long, Integer> damagedParts = new HashMap<>();
    private int writesThatFail;
    private int publicationsThatFail;

    SimDisk(World world, Scenario scenario) {
        this.world = world;
        this.scenario = scenario;
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
            damagedParts.put(published.lastKey(), world.random.nextInt(scenario.parts()));
        }
    }

    @Override
    public ShardFile writeShard(
            long step, int epoch, int stage, RankPlace place, List<NamedTensor> state) {
        if (writesThatFail > 0) {
            writesThatFail--;
            throw new IllegalStateException("No space left on device");
        }
        int part = scenario.partOf(scenario.grid().rankAt(place));
        written.computeIfAbsent(new Set(step, epoch), _ -> new HashMap<>())
                .put(part, SimStage.bits(state));
        return new ShardFile(stage, "part-" + part, 8, "00");
    }

    @Override
    public void publish(long step, int epoch, List<ShardFile> shards) {
        if (publicationsThatFail > 0) {
            publicationsThatFail--;
            throw new IllegalStateException("torn");
        }
        Map<Integer, ByteBuffer> set = written.getOrDefault(new Set(step, epoch), Map.of());
        if (shards.size() != scenario.parts() || set.size() != scenario.parts()) {
            world.violated("checkpoint %d published with %s of %s", step, set.keySet(), shards);
        }
        published.put(step, Map.copyOf(set));
        damagedParts.remove(step);
    }

    @Override
    public void abandon(long step, int epoch) {
        written.remove(new Set(step, epoch));
    }

    @Override
    public OptionalLong newestBefore(long step) {
        Long older = published.lowerKey(step);
        return older == null ? OptionalLong.empty() : OptionalLong.of(older);
    }

    ByteBuffer bits(long step, int part) {
        Map<Integer, ByteBuffer> set = published.get(step);
        if (set == null) {
            world.violated("a rank starts from checkpoint %d, which was never published", step);
            throw new IllegalStateException("no checkpoint after step " + step);
        }
        if (Objects.equals(damagedParts.get(step), part)) {
            throw new DamagedCheckpointException(
                    "step-%06d/part-%d.safetensors: damaged".formatted(step, part),
                    new IllegalStateException("damaged"));
        }
        return Objects.requireNonNull(set.get(part));
    }

    /** The newest complete set; -1 if there is none. */
    long newest() {
        return published.isEmpty() ? -1 : published.lastKey();
    }

    Map<Long, Map<Integer, ByteBuffer>> published() {
        return published;
    }
}
