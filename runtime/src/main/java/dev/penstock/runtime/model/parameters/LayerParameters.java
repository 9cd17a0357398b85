package dev.penstock.runtime.model.parameters;

import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.runtime.model.parameters.ParameterSpec.Initial;
import dev.penstock.runtime.model.shape.ShardShape;
import java.util.List;
import java.util.stream.Stream;

/** The parameters of one transformer block. */
public record LayerParameters(
        NormParameters norm1,
        LinearParameters queryKeyValue,
        LinearParameters attentionOutput,
        NormParameters norm2,
        LinearParameters hidden,
        LinearParameters mlpOutput) {

    /** Allocates the block {@code h.LAYER}. */
    static LayerParameters allocate(ParameterAllocator allocator, ShardShape shape, int layer) {
        String h = "h." + layer + ".";
        int d = shape.width();
        int inner = shape.model().hidden();
        return allocator.group(
                "h." + layer,
                () ->
                        new LayerParameters(
                                norm(allocator, h + "ln_1", shape),
                                columns(allocator, h + "attn.c_attn", shape, 3 * d, 3),
                                rows(allocator, h + "attn.c_proj", shape, d),
                                norm(allocator, h + "ln_2", shape),
                                columns(allocator, h + "mlp.c_fc", shape, inner, 1),
                                rows(allocator, h + "mlp.c_proj", shape, inner)));
    }

    static NormParameters norm(ParameterAllocator allocator, String name, ShardShape shape) {
        TensorPiece all = TensorPiece.all(List.of(shape.width()));
        boolean counts = shape.countsCommon();
        return new NormParameters(
                name,
                allocator.allocate(ParameterSpec.gain(name + ".weight", all).countedIf(counts)),
                allocator.allocate(ParameterSpec.bias(name + ".bias", all).countedIf(counts)));
    }

    /** Returns the groups in which the block lies. */
    List<ParameterGroup> groups() {
        return Stream.of(norm1.gain(), queryKeyValue.weight())
                .map(Parameter::group)
                .distinct()
                .toList();
    }

    /** A linear layer whose outputs are divided among the shards. */
    private static LinearParameters columns(
            ParameterAllocator allocator, String name, ShardShape shape, int out, int tensors) {
        TensorPiece weight = shape.columns(List.of(shape.width(), out), tensors);
        TensorPiece bias = shape.columns(List.of(out), tensors);
        return new LinearParameters(
                allocator.allocate(ParameterSpec.matrix(name + ".weight", weight, Initial.NORMAL)),
                allocator.allocate(ParameterSpec.bias(name + ".bias", bias)));
    }

    /** A linear layer whose inputs are divided among the shards; the bias is added to their sum. */
    private static LinearParameters rows(
            ParameterAllocator allocator, String name, ShardShape shape, int in) {
        TensorPiece weight = shape.rows(in, shape.width());
        TensorPiece bias = TensorPiece.all(List.of(shape.width()));
        return new LinearParameters(
                allocator.allocate(
                        ParameterSpec.matrix(name + ".weight", weight, Initial.RESIDUAL)),
                allocator.allocate(
                        ParameterSpec.bias(name + ".bias", bias).countedIf(shape.countsCommon())));
    }
}
