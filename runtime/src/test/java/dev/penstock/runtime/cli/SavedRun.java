package dev.penstock.runtime.cli;

import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.cuda.cpu.CpuScope;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.checkpoint.CheckpointDirectory;
import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.checkpoint.CheckpointIdentity;
import dev.penstock.runtime.model.family.ModelConfig;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** Writes a run's folder with one checkpoint of a tiny byte-level model with random weights. */
public final class SavedRun {
    public static final ModelConfig MODEL = ModelConfig.gpt2(256, 16, 8, 1, 2, true);

    private SavedRun() {}

    /** The checkpoint's folder. */
    public static Path write(Path runDirectory, long step) {
        return write(runDirectory, step, MODEL, "no parameter");
    }

    /** The same of another model. */
    public static Path write(Path runDirectory, long step, ModelConfig model) {
        return write(runDirectory, step, model, "no parameter");
    }

    /** The same, with a NaN in a parameter. */
    public static Path writeWithNan(Path runDirectory, long step, String parameter) {
        return write(runDirectory, step, MODEL, parameter);
    }

    private static Path write(Path runDirectory, long step, ModelConfig model, String broken) {
        Path root = runDirectory.resolve(CheckpointFolders.FOLDER);
        try (DeviceScope memory = CpuScope.root("test", Long.MAX_VALUE, false);
                CheckpointDirectory directory =
                        new CheckpointDirectory(
                                root, new CheckpointIdentity(model, "0123abcd", 42), 5)) {
            directory.publish(
                    step,
                    1,
                    List.of(
                            directory.writeShard(
                                    step,
                                    1,
                                    0,
                                    RankPlace.single(0),
                                    state(memory, new Random(7), model, broken))));
        }
        return CheckpointFolders.of(root, step);
    }

    private static List<NamedTensor> state(
            DeviceScope memory, Random random, ModelConfig model, String broken) {
        List<NamedTensor> state = new ArrayList<>();
        model.parameters()
                .forEach(
                        (name, shape) -> {
                            for (String kind : List.of("", "optimizer.m.", "optimizer.v.")) {
                                NamedTensor tensor = tensor(memory, random, kind + name, shape);
                                if (tensor.name().equals(broken)) {
                                    tensor.tensor()
                                            .segment()
                                            .setAtIndex(ValueLayout.JAVA_FLOAT, 5, Float.NaN);
                                }
                                state.add(tensor);
                            }
                        });
        return state;
    }

    private static NamedTensor tensor(
            DeviceScope memory, Random random, String name, List<Integer> shape) {
        int rows = shape.size() == 1 ? 1 : shape.getFirst();
        Tensor tensor = memory.tensor(name, DType.F32, rows, shape.getLast());
        for (int i = 0; i < tensor.elements(); i++) {
            float value = (float) random.nextGaussian();
            tensor.segment().setAtIndex(ValueLayout.JAVA_FLOAT, i, value);
        }
        return new NamedTensor(name, shape, tensor);
    }
}
