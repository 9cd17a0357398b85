package dev.penstock.runtime.model.parameters;

import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.runtime.model.parameters.ParameterSpec.Initial;
import dev.penstock.runtime.model.shape.BlockDesign;
import dev.penstock.runtime.model.shape.HeadDesign;
import dev.penstock.runtime.model.shape.ShardShape;
import java.util.Collections;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The parameters of one transformer block.
 *
 * @param headNorms null where heads are not normalised
 */
public record LayerParameters(
        NormParameters norm1,
        LinearParameters queryKeyValue,
        @Nullable HeadNormParameters headNorms,
        LinearParameters attentionOutput,
        NormParameters norm2,
        LinearParameters hidden,
        LinearParameters mlpOutput) {

    /** Allocates the block {@code h.LAYER}. */
    static LayerParameters allocate(ParameterAllocator allocator, ShardShape shape, int layer) {
        String h = "h." + layer + ".";
        BlockDesign block = shape.model().block();
        HeadDesign heads = block.heads();
        List<Integer> queryKeyValue =
                List.of(heads.queryColumns(), heads.keyColumns(), heads.keyColumns());
        List<Integer> hidden = Collections.nCopies(block.activation().parts(), block.hidden());
        boolean first = block.queryKeyValueBias();
        boolean others = block.otherBiases();
        return allocator.group(
                "h." + layer,
                () ->
                        new LayerParameters(
                                norm(allocator, h + "ln_1", shape),
                                columns(allocator, h + "attn.c_attn", shape, queryKeyValue, first),
                                heads.norms() ? headNorms(allocator, h + "attn.", shape) : null,
                                rows(
                                        allocator,
                                        h + "attn.c_proj",
                                        shape,
                                        heads.queryColumns(),
                                        others),
                                norm(allocator, h + "ln_2", shape),
                                columns(allocator, h + "mlp.c_fc", shape, hidden, others),
                                rows(allocator, h + "mlp.c_proj", shape, block.hidden(), others)));
    }

    static NormParameters norm(ParameterAllocator allocator, String name, ShardShape shape) {
        TensorPiece all = TensorPiece.all(List.of(shape.width()));
        boolean counts = shape.countsCommon();
        return new NormParameters(
                name,
                allocator.allocate(ParameterSpec.gain(name + ".weight", all).countedIf(counts)),
                shape.model().block().norm().hasBias()
                        ? allocator.allocate(
                                ParameterSpec.bias(name + ".bias", all).countedIf(counts))
                        : null);
    }

    /** The norms of heads, which all shards hold. */
    private static HeadNormParameters headNorms(
            ParameterAllocator allocator, String prefix, ShardShape shape) {
        TensorPiece all = TensorPiece.all(List.of(shape.model().block().heads().size()));
        boolean counts = shape.countsCommon();
        return new HeadNormParameters(
                allocator.allocate(
                        ParameterSpec.gain(prefix + "q_norm.weight", all).countedIf(counts)),
                allocator.allocate(
                        ParameterSpec.gain(prefix + "k_norm.weight", all).countedIf(counts)));
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
            ParameterAllocator allocator,
            String name,
            ShardShape shape,
            List<Integer> widths,
            boolean biased) {
        int out = widths.stream().mapToInt(Integer::intValue).sum();
        TensorPiece weight = shape.columns(List.of(shape.width(), out), widths);
        TensorPiece bias = shape.columns(List.of(out), widths);
        return new LinearParameters(
                allocator.allocate(ParameterSpec.matrix(name + ".weight", weight, Initial.NORMAL)),
                biased ? allocator.allocate(ParameterSpec.bias(name + ".bias", bias)) : null);
    }

    /** A linear layer whose inputs are divided among the shards; the bias is added to their sum. */
    private static LinearParameters rows(
            ParameterAllocator allocator, String name, ShardShape shape, int in, boolean biased) {
        TensorPiece weight = shape.rows(in, shape.width());
        TensorPiece bias = TensorPiece.all(List.of(shape.width()));
        return new LinearParameters(
                allocator.allocate(
                        ParameterSpec.matrix(name + ".weight", weight, Initial.RESIDUAL)),
                biased
                        ? allocator.allocate(
                                ParameterSpec.bias(name + ".bias", bias)
                                        .countedIf(shape.countsCommon()))
                        : null);
    }
}
