package dev.penstock.runtime.checkpoint;

import dev.penstock.actors.spi.CheckpointStore.ShardFile;
import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.cuda.cpu.CpuScope;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.family.ModelConfig;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** A model of a few kilobytes whose state at a step is known: every element tells name and step. */
final class TinyRun implements AutoCloseable {
    static final ModelConfig MODEL = ModelConfig.gpt2(11, 6, 8, 3, 2, true);
    private static final List<String> KINDS = List.of("", "optimizer.m.", "optimizer.v.");

    private final DeviceScope memory = CpuScope.root("test", Long.MAX_VALUE, false);
    private final int stages;
    private final int shards;
    private final int replicas;

    TinyRun(int stages) {
        this(stages, 1, 1);
    }

    /**
     * Of a run whose matrices are cut into strips of columns, and whose pieces are cut once more
     * into stretches.
     */
    TinyRun(int stages, int shards, int replicas) {
        this.stages = stages;
        this.shards = shards;
        this.replicas = replicas;
    }

    static CheckpointDirectory directory(Path root, int retained) {
        return new CheckpointDirectory(
                root, new CheckpointIdentity(MODEL, "0123abcd", 42), retained);
    }

    /** Writes all shards of a step without publishing them. */
    List<ShardFile> writeShards(CheckpointDirectory directory, long step) {
        List<ShardFile> shards = new ArrayList<>();
        for (int stage = 0; stage < stages; stage++) {
            for (int shard = 0; shard < this.shards; shard++) {
                for (int replica = 0; replica < replicas; replica++) {
                    var place = new RankPlace(stage, shard, 0, replica);
                    shards.add(directory.writeShard(step, 1, stage, place, state(step, place)));
                }
            }
        }
        return shards;
    }

    void save(CheckpointDirectory directory, long step) {
        directory.publish(step, 1, writeShards(directory, step));
    }

    /** Parameters and moments dealt out to the stages in turn. */
    List<NamedTensor> state(long step, int stage) {
        List<NamedTensor> state = new ArrayList<>();
        int turn = 0;
        for (Map.Entry<String, List<Integer>> parameter : MODEL.parameters().entrySet()) {
            if (turn++ % stages == stage) {
                for (String kind : KINDS) {
                    state.add(tensor(kind + parameter.getKey(), parameter.getValue(), step));
                }
            }
        }
        return state;
    }

    /** What one rank holds of that; all pieces of all ranks are disjoint. */
    List<NamedTensor> state(long step, RankPlace place) {
        return state(step, place.pipeline()).stream()
                .flatMap(whole -> piece(whole, place).stream())
                .toList();
    }

    private Optional<NamedTensor> piece(NamedTensor whole, RankPlace place) {
        List<Integer> shape = whole.shape();
        boolean cut = shards > 1 && shape.size() == 2 && shape.getLast() % (2 * shards) == 0;
        if (!cut && place.tensor() > 0) {
            return Optional.empty();
        }
        TensorPiece strips = cut ? columns(shape, place.tensor()) : whole.piece();
        long each = Math.ceilDiv(strips.elements(), replicas);
        TensorPiece piece =
                strips.stretch(
                        Math.min(strips.elements(), place.data() * each),
                        Math.min(strips.elements(), (place.data() + 1) * each));
        if (piece.elements() == 0) {
            return Optional.empty();
        }
        // one row more, as of a padded table
        Tensor tensor =
                memory.tensor(whole.name(), DType.F32, 1, (int) piece.elements() + shape.getLast());
        piece.extract(whole.tensor().segment(), tensor.segment());
        return Optional.of(new NamedTensor(whole.name(), piece, tensor));
    }

    /** Of both halves of the columns, the shard's part. */
    private TensorPiece columns(List<Integer> shape, int shard) {
        int rows = shape.getFirst();
        int half = shape.getLast() / 2;
        int wide = half / shards;
        return TensorPiece.strips(
                shape,
                List.of(
                        new TensorPiece.Strip(0, rows, shard * wide, wide),
                        new TensorPiece.Strip(0, rows, half + shard * wide, wide)));
    }

    private NamedTensor tensor(String name, List<Integer> shape, long step) {
        int rows = shape.size() == 1 ? 1 : shape.getFirst();
        Tensor tensor = memory.tensor(name, DType.F32, rows, shape.getLast());
        for (int i = 0; i < tensor.elements(); i++) {
            tensor.segment().setAtIndex(ValueLayout.JAVA_FLOAT, i, element(name, step, i));
        }
        return new NamedTensor(name, shape, tensor);
    }

    static float element(String name, long step, int index) {
        return name.hashCode() % 1000 + step * 0.5f + index * 0.001f;
    }

    @Override
    public void close() {
        memory.close();
    }
}
