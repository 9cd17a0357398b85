package dev.penstock.runtime.checkpoint;

import dev.penstock.actors.spi.CheckpointStore.ShardFile;
import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.cuda.cpu.CpuScope;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** A model of a few kilobytes whose state at a step is known: every element tells name and step. */
final class TinyRun implements AutoCloseable {
    static final Gpt2Config MODEL = new Gpt2Config(11, 6, 8, 3, 2, true);
    private static final List<String> KINDS = List.of("", "optimizer.m.", "optimizer.v.");

    private final DeviceScope memory = CpuScope.root("test", Long.MAX_VALUE, false);
    private final int stages;

    TinyRun(int stages) {
        this.stages = stages;
    }

    static CheckpointDirectory directory(Path root, int retained) {
        return new CheckpointDirectory(
                root, new CheckpointIdentity(MODEL, "0123abcd", 42), retained);
    }

    /** Writes all shards of a step without publishing them. */
    List<ShardFile> writeShards(CheckpointDirectory directory, long step) {
        List<ShardFile> shards = new ArrayList<>();
        for (int stage = 0; stage < stages; stage++) {
            shards.add(directory.writeShard(step, stage, state(step, stage)));
        }
        return shards;
    }

    void save(CheckpointDirectory directory, long step) {
        directory.publish(step, writeShards(directory, step));
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
