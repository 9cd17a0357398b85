package dev.penstock.runtime.model.mesh;

import dev.penstock.actors.collective.TensorMesh;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.parameters.LayerParameters;
import dev.penstock.runtime.model.parameters.LinearParameters;
import dev.penstock.runtime.model.parameters.Parameter;
import dev.penstock.runtime.model.parameters.StageParameters;
import dev.penstock.runtime.model.shape.ShardShape;
import java.util.ArrayList;
import java.util.List;

/**
 * Gradients of what several shards of a mesh hold the same part of, each from the rows that it has:
 * biases, norms and positions, and in 2.5d matrices. They are added up once in a step, before they
 * are used, so that the holders' parameters stay equal.
 */
public final class MeshGradients {
    /**
     * A gradient to sum.
     *
     * @param axes along which shards hold the same part
     */
    public record Shared(Tensor gradient, List<Integer> axes) {}

    private MeshGradients() {}

    /** Returns all of a stage, in an order that is the same on all shards. */
    public static List<Shared> of(ShardShape shape, StageParameters parameters) {
        TensorMesh mesh = shape.mesh();
        List<Integer> matrices = mesh.copiesOfMatrices();
        List<Integer> stream = mesh.copiesOfStreamVectors();
        List<Integer> inner = mesh.copiesOfInnerVectors();
        List<Shared> all = new ArrayList<>();
        StageParameters.Embedding embedding = parameters.embedding();
        if (embedding != null) {
            add(all, embedding.tokens(), matrices);
            if (embedding.positions() != null) {
                add(all, embedding.positions(), stream);
            }
        }
        for (LayerParameters layer : parameters.layers()) {
            layer.norm1().all().forEach(p -> add(all, p, stream));
            linear(all, layer.queryKeyValue(), matrices, inner);
            linear(all, layer.attentionOutput(), matrices, stream);
            layer.norm2().all().forEach(p -> add(all, p, stream));
            linear(all, layer.hidden(), matrices, inner);
            linear(all, layer.mlpOutput(), matrices, stream);
        }
        StageParameters.Head head = parameters.head();
        if (head != null) {
            head.norm().all().forEach(p -> add(all, p, stream));
            if (head.second() != null) {
                addTo(all, head.second().part(), matrices);
            } else {
                add(all, head.matrix(), matrices);
            }
        }
        return all;
    }

    private static void linear(
            List<Shared> all, LinearParameters linear, List<Integer> weight, List<Integer> bias) {
        add(all, linear.weight(), weight);
        if (linear.bias() != null) {
            add(all, linear.bias(), bias);
        }
    }

    private static void add(List<Shared> all, Parameter parameter, List<Integer> axes) {
        if (parameter.isTrained()) {
            addTo(all, parameter.gradientSum(), axes);
        }
    }

    private static void addTo(List<Shared> all, Tensor gradient, List<Integer> axes) {
        if (!axes.isEmpty()) {
            all.add(new Shared(gradient, axes));
        }
    }

    /** Replaces each shard's gradients by the sums over all that hold the same part. */
    public static void sum(MeshShards mesh, ShardShape shape, StageParameters parameters) {
        of(shape, parameters).forEach(each -> mesh.sum(each.gradient(), each.axes()));
    }
}
