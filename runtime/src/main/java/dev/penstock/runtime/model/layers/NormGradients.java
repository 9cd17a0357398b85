package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.parameters.LayerParameters;
import dev.penstock.runtime.model.parameters.Parameter;
import dev.penstock.runtime.model.parameters.StageParameters;
import dev.penstock.runtime.model.shape.ShardShape;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Gradients of what all tensor shards hold and each has only a part of the gradients of, which are
 * added up once before they are used: those of norms, and of a head's own layer, where shards
 * divide rows, of the norms of heads, of which each shard has some, and of the matrices of adapters
 * that are not divided.
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
            Kernels kernels,
            TensorShards shards,
            ShardShape shape,
            StageParameters parameters,
            Tensor room) {
        this.kernels = kernels;
        this.shards = shards;
        this.parameters = of(shape, parameters);
        this.room = room;
    }

    /** Allocates room for all gradients, side by side; null if there are none. */
    public static @Nullable Tensor room(
            DeviceScope scope, ShardShape shape, StageParameters parameters) {
        List<Parameter> all = of(shape, parameters);
        if (all.isEmpty()) {
            return null;
        }
        int elements = all.stream().mapToInt(NormGradients::elements).sum();
        DType type = all.getFirst().group().sharding().exact() ? DType.I64 : DType.F32;
        return scope.tensor("gradients of norms", type, 1, elements);
    }

    private static int elements(Parameter parameter) {
        return Math.toIntExact(parameter.spec().piece().elements());
    }

    private static List<Parameter> of(ShardShape shape, StageParameters parameters) {
        List<Parameter> all = new ArrayList<>();
        for (LayerParameters layer : parameters.layers()) {
            if (shape.sequence()) {
                all.addAll(layer.norm1().all());
                all.addAll(layer.norm2().all());
            }
            if (layer.headNorms() != null && shape.shards() > 1) {
                all.addAll(layer.headNorms().all());
            }
            if (shape.shards() > 1) {
                all.addAll(layer.wholeInAdapters());
            }
        }
        if (parameters.head() != null && shape.sequence()) {
            all.addAll(parameters.head().norm().all());
            if (parameters.head().transform() != null) {
                all.addAll(parameters.head().transform().common());
            }
        }
        all.removeIf(parameter -> !parameter.isTrained());
        return all;
    }

    /** Replaces each shard's gradients by the sums over all shards. */
    public void sum() {
        int first = 0;
        for (Parameter parameter : parameters) {
            kernels.copy(parameter.gradientSum(), room.columns(first, elements(parameter)));
            first += elements(parameter);
        }
        shards.await(shards.beginSumOfWhole(room));
        first = 0;
        for (Parameter parameter : parameters) {
            kernels.copy(room.columns(first, elements(parameter)), parameter.gradientSum());
            first += elements(parameter);
        }
    }
}
