package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.parameters.LayerParameters;
import dev.penstock.runtime.model.parameters.NormParameters;
import dev.penstock.runtime.model.parameters.Parameter;
import dev.penstock.runtime.model.parameters.StageParameters;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Gradients of a stage's norms where tensor shards divide rows: each shard has sums over its own
 * rows, which are added up once before they are used.
 */
public final class NormGradients {
    private final Kernels kernels;
    private final TensorShards shards;
    private final List<Parameter> parameters;
    private final Tensor room;

    /**
     * @param room of {@link #room}
     */
    public NormGradients(
            Kernels kernels, TensorShards shards, StageParameters parameters, Tensor room) {
        this.kernels = kernels;
        this.shards = shards;
        this.parameters = of(parameters);
        this.room = room;
    }

    /** Allocates room for all gradients, one in a row; null for an embedding alone. */
    public static @Nullable Tensor room(DeviceScope scope, StageParameters parameters) {
        List<Parameter> all = of(parameters);
        if (all.isEmpty()) {
            return null;
        }
        int width = Math.toIntExact(all.getFirst().spec().piece().elements());
        return scope.tensor("gradients of norms", DType.F32, all.size(), width);
    }

    private static List<Parameter> of(StageParameters parameters) {
        List<NormParameters> norms = new ArrayList<>();
        for (LayerParameters layer : parameters.layers()) {
            norms.add(layer.norm1());
            norms.add(layer.norm2());
        }
        if (parameters.head() != null) {
            norms.add(parameters.head().norm());
        }
        return norms.stream().flatMap(norm -> List.of(norm.gain(), norm.bias()).stream()).toList();
    }

    /** Replaces each shard's gradients by the sums over all shards. */
    public void sum() {
        for (int i = 0; i < parameters.size(); i++) {
            kernels.copy(parameters.get(i).gradient(), room.rows(i, 1));
        }
        shards.await(shards.beginSumOfWhole(room));
        for (int i = 0; i < parameters.size(); i++) {
            kernels.copy(room.rows(i, 1), parameters.get(i).gradient());
        }
    }
}
