package dev.penstock.runtime.model.parameters;

import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.runtime.model.parameters.ParameterSpec.Initial;
import dev.penstock.runtime.model.shape.AdapterPlace;
import dev.penstock.runtime.model.shape.Adapters;
import dev.penstock.runtime.model.shape.BlockDesign;
import dev.penstock.runtime.model.shape.HeadDesign;
import dev.penstock.runtime.model.shape.ShardShape;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.Function;
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
        HeadDesign heads = block.heads(layer);
        List<Integer> queryKeyValue = heads.widths();
        List<Integer> hidden = Collections.nCopies(block.activation().parts(), block.hidden());
        boolean first = block.queryKeyValueBias();
        boolean others = block.otherBiases();
        return allocator.group(
                "h." + layer,
                () ->
                        new LayerParameters(
                                norm(allocator, h + "ln_1", shape),
                                columns(
                                        allocator,
                                        layer,
                                        "attn.c_attn",
                                        shape,
                                        queryKeyValue,
                                        first),
                                heads.norms() ? headNorms(allocator, h + "attn.", shape) : null,
                                rows(
                                        allocator,
                                        layer,
                                        "attn.c_proj",
                                        shape,
                                        heads.outputColumns(),
                                        others),
                                norm(allocator, h + "ln_2", shape),
                                columns(allocator, layer, "mlp.c_fc", shape, hidden, others),
                                rows(
                                        allocator,
                                        layer,
                                        "mlp.c_proj",
                                        shape,
                                        block.hidden(),
                                        others)));
    }

    static NormParameters norm(ParameterAllocator allocator, String name, ShardShape shape) {
        TensorPiece all = shape.ofStream(List.of(shape.model().width()));
        boolean counts = shape.countsCommon();
        return new NormParameters(
                name,
                allocator.allocate(ParameterSpec.gain(name + ".weight", all).countedIf(counts)),
                shape.model().block().norm().hasBias()
                        ? allocator.allocate(
                                ParameterSpec.bias(name + ".bias", all).countedIf(counts))
                        : null);
    }

    /** The layer of a head that predicts hidden words, or of one that classifies. */
    static TransformParameters transform(ParameterAllocator allocator, ShardShape shape) {
        int width = shape.width();
        boolean counts = shape.countsCommon();
        TensorPiece square = TensorPiece.all(List.of(width, width));
        TensorPiece row = TensorPiece.all(List.of(width));
        boolean classifies = shape.model().classifies();
        String name = classifies ? "pooler" : "head.dense";
        var dense =
                new LinearParameters(
                        allocator.allocate(
                                ParameterSpec.matrix(name + ".weight", square, Initial.NORMAL)
                                        .countedIf(counts)),
                        allocator.allocate(
                                ParameterSpec.bias(name + ".bias", row).countedIf(counts)),
                        List.of());
        return new TransformParameters(
                dense,
                classifies ? null : norm(allocator, "head.norm", shape),
                allocator.allocate(
                        ParameterSpec.bias(
                                classifies ? "classifier.bias" : "head.bias", shape.outputBias())));
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

    /** Returns whether anything of the first half is trained. */
    public boolean trainsAttention() {
        return Stream.of(
                        norm1.all().stream(),
                        queryKeyValue.all(),
                        headNorms == null ? Stream.<Parameter>of() : headNorms.all().stream(),
                        attentionOutput.all())
                .flatMap(each -> each)
                .anyMatch(Parameter::isTrained);
    }

    /** Returns the groups in which the block lies. */
    List<ParameterGroup> groups() {
        return Stream.of(
                        norm1.all().stream(),
                        queryKeyValue.all(),
                        headNorms == null ? Stream.<Parameter>of() : headNorms.all().stream(),
                        attentionOutput.all(),
                        norm2.all().stream(),
                        hidden.all(),
                        mlpOutput.all())
                .flatMap(each -> each)
                .map(Parameter::group)
                .distinct()
                .toList();
    }

    /**
     * Returns the groups that products for the weights read: of trained branches, each of whose
     * matrices is a factor of the other's gradient.
     */
    List<ParameterGroup> groupsOfBranches() {
        return Stream.of(queryKeyValue, attentionOutput, hidden, mlpOutput)
                .flatMap(linear -> linear.adapters().stream())
                .filter(branch -> branch.inner().isTrained() || branch.outer().isTrained())
                .flatMap(branch -> Stream.of(branch.inner().group(), branch.outer().group()))
                .distinct()
                .toList();
    }

    /** A linear layer whose outputs are divided among the shards. */
    private static LinearParameters columns(
            ParameterAllocator allocator,
            int layer,
            String linear,
            ShardShape shape,
            List<Integer> widths,
            boolean biased) {
        String name = "h." + layer + "." + linear;
        int out = widths.stream().mapToInt(Integer::intValue).sum();
        TensorPiece weight = shape.columns(List.of(shape.model().width(), out), widths);
        TensorPiece bias = shape.columns(List.of(out), widths);
        return new LinearParameters(
                allocator.allocate(
                        ParameterSpec.matrix(name + ".weight", weight, Initial.NORMAL)
                                .countedIf(shape.countsMatrices())),
                biased
                        ? allocator.allocate(
                                ParameterSpec.bias(name + ".bias", bias)
                                        .countedIf(shape.countsInner()))
                        : null,
                adapters(
                        allocator,
                        layer,
                        linear,
                        place -> besideColumns(shape, widths, place, rank(allocator))));
    }

    /** A linear layer whose inputs are divided among the shards; the bias is added to their sum. */
    private static LinearParameters rows(
            ParameterAllocator allocator,
            int layer,
            String linear,
            ShardShape shape,
            int in,
            boolean biased) {
        String name = "h." + layer + "." + linear;
        TensorPiece weight = shape.rows(in, shape.model().width());
        TensorPiece bias = shape.ofStream(List.of(shape.model().width()));
        return new LinearParameters(
                allocator.allocate(
                        ParameterSpec.matrix(name + ".weight", weight, Initial.RESIDUAL)
                                .countedIf(shape.countsMatrices())),
                biased
                        ? allocator.allocate(
                                ParameterSpec.bias(name + ".bias", bias)
                                        .countedIf(shape.countsCommon()))
                        : null,
                adapters(
                        allocator,
                        layer,
                        linear,
                        place -> besideRows(shape, in, place, rank(allocator))));
    }

    /**
     * What a shard holds of a branch. One matrix of the two is divided as the layer is; the other
     * is on all shards, and each of them computes a part of its gradient.
     *
     * @param firstColumn of this shard's part of the layer's output
     */
    private record BranchPieces(
            TensorPiece inner,
            boolean innerCounts,
            TensorPiece outer,
            boolean outerCounts,
            int firstColumn) {}

    private static BranchPieces besideColumns(
            ShardShape shape, List<Integer> widths, AdapterPlace place, int rank) {
        List<Integer> own = new ArrayList<>();
        int first = 0;
        for (int width : widths) {
            if (first >= place.firstColumn() && first < place.firstColumn() + place.columns()) {
                own.add(width);
            }
            first += width;
        }
        return new BranchPieces(
                TensorPiece.all(List.of(shape.width(), rank)),
                shape.countsCommon(),
                shape.columns(List.of(rank, place.columns()), own),
                true,
                place.firstColumn() / shape.shards());
    }

    private static BranchPieces besideRows(ShardShape shape, int in, AdapterPlace place, int rank) {
        return new BranchPieces(
                shape.rows(in, rank),
                true,
                TensorPiece.all(List.of(rank, place.columns())),
                shape.countsCommon(),
                place.firstColumn());
    }

    private static int rank(ParameterAllocator allocator) {
        return allocator.fineTuning().adapters().map(Adapters::rank).orElse(0);
    }

    /** The branches beside a linear layer. */
    private static List<AdapterParameters> adapters(
            ParameterAllocator allocator,
            int layer,
            String linear,
            Function<AdapterPlace, BranchPieces> pieces) {
        return allocator.fineTuning().beside(linear).stream()
                .map(place -> adapter(allocator, layer, place, pieces.apply(place)))
                .toList();
    }

    private static AdapterParameters adapter(
            ParameterAllocator allocator, int layer, AdapterPlace place, BranchPieces pieces) {
        return new AdapterParameters(
                allocator.allocate(
                        ParameterSpec.matrix(place.inner(layer), pieces.inner(), Initial.KAIMING)
                                .countedIf(pieces.innerCounts())),
                allocator.allocate(
                        ParameterSpec.matrix(place.outer(layer), pieces.outer(), Initial.ZERO)
                                .countedIf(pieces.outerCounts())),
                pieces.firstColumn());
    }

    /** Returns the matrices of branches that all shards hold. */
    public List<Parameter> wholeInAdapters() {
        return Stream.concat(
                        Stream.of(queryKeyValue, hidden)
                                .flatMap(linear -> linear.adapters().stream())
                                .map(AdapterParameters::inner),
                        Stream.of(attentionOutput, mlpOutput)
                                .flatMap(linear -> linear.adapters().stream())
                                .map(AdapterParameters::outer))
                .toList();
    }
}
