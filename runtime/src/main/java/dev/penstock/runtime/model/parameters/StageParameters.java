package dev.penstock.runtime.model.parameters;

import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.runtime.model.parameters.ParameterSpec.Initial;
import dev.penstock.runtime.model.shape.EncoderDesign;
import dev.penstock.runtime.model.shape.ShardShape;
import dev.penstock.runtime.model.shape.StageRole;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The parameters of a stage.
 *
 * <p>The token table, and an untied head's matrix, are groups of their own: two stages that share a
 * matrix then shard it alike.
 *
 * @param all every parameter once, in the model's order
 * @param groups all groups once, in the model's order
 */
public record StageParameters(
        @Nullable Embedding embedding,
        List<LayerParameters> layers,
        @Nullable Head head,
        List<Parameter> all,
        List<ParameterGroup> groups) {

    /** The name of the token table. */
    public static final String TOKEN_TABLE = "wte.weight";

    /** The name of the table of types of tokens. */
    private static final String TYPE_TABLE = "wtt.weight";

    /** The name of the table of learned positions. */
    public static final String POSITION_TABLE = "wpe.weight";

    static final String HEAD_MATRIX = "lm_head.weight";

    /**
     * Token and position tables: this shard's rows of {@code [V, d]}, and {@code [T, d]}.
     *
     * @param positions null where places are not learned
     * @param types table of types of tokens; null where there are none
     */
    public record Embedding(
            Parameter tokens, @Nullable Parameter positions, @Nullable Parameter types) {}

    /**
     * Final norm and this shard's rows of the matrix {@code [V, d]} of the logits.
     *
     * @param matrixGradient the matrix in which the head's part of the gradient accumulates. A tied
     *     matrix has one buffer for the embedding's part and one for the head's on every layout,
     *     and the sum is taken at the end of the step, so that the bits do not depend on the number
     *     of stages. Null if the matrix is not trained.
     * @param second the latter as a group, if one stage has both; otherwise null
     * @param transform the layer between norm and logits; null where there is none
     */
    public record Head(
            NormParameters norm,
            @Nullable TransformParameters transform,
            Parameter matrix,
            @Nullable GroupView matrixGradient,
            @Nullable GroupGradient second) {}

    public static StageParameters allocate(
            ParameterAllocator allocator, ShardShape shape, StageRole role) {
        Embedding embedding = role.first() ? embedding(allocator, shape, role) : null;
        List<LayerParameters> layers = new ArrayList<>();
        for (int i = 0; i < role.layers(); i++) {
            layers.add(LayerParameters.allocate(allocator, shape, role.firstLayer() + i));
        }
        Head head = role.last() ? head(allocator, shape, embedding) : null;
        return new StageParameters(
                embedding, List.copyOf(layers), head, allocator.allocated(), allocator.groups());
    }

    private static Embedding embedding(
            ParameterAllocator allocator, ShardShape shape, StageRole role) {
        ParameterSpec tokens =
                ParameterSpec.table(TOKEN_TABLE, shape.tokenRows())
                        .countedIf(shape.countsMatrices());
        boolean tiedHere = role.last() && shape.model().tied();
        return new Embedding(
                tiedHere || allocator.narrowsTables()
                        ? allocator.tables(
                                ParameterAllocator.TOKENS,
                                () -> allocator.allocate(tokens.asFactor()))
                        : allocator.group(
                                ParameterAllocator.TOKENS, () -> allocator.allocate(tokens)),
                positions(allocator, shape),
                types(allocator, shape));
    }

    private static @Nullable Parameter types(ParameterAllocator allocator, ShardShape shape) {
        EncoderDesign encoder = shape.model().block().encoder();
        if (encoder == null) {
            return null;
        }
        TensorPiece types = TensorPiece.all(List.of(encoder.tokenTypes(), shape.width()));
        ParameterSpec table =
                ParameterSpec.table(TYPE_TABLE, types).countedIf(shape.countsCommon());
        return allocator.group(ParameterAllocator.TYPES, () -> allocator.allocate(table));
    }

    private static @Nullable Parameter positions(ParameterAllocator allocator, ShardShape shape) {
        int rows = shape.model().positions().tableRows();
        if (rows == 0) {
            return null;
        }
        TensorPiece positions = shape.ofStream(List.of(rows, shape.model().width()));
        ParameterSpec table =
                ParameterSpec.table(POSITION_TABLE, positions).countedIf(shape.countsCommon());
        return allocator.group(ParameterAllocator.POSITIONS, () -> allocator.allocate(table));
    }

    private static Head head(
            ParameterAllocator allocator, ShardShape shape, @Nullable Embedding embedding) {
        record Own(NormParameters norm, @Nullable TransformParameters transform) {}
        Own own =
                allocator.group(
                        "ln_f",
                        () ->
                                new Own(
                                        LayerParameters.norm(allocator, "ln_f", shape),
                                        shape.model().block().encoder() == null
                                                ? null
                                                : LayerParameters.transform(allocator, shape)));
        boolean tied = shape.model().tied();
        if (tied && embedding != null) {
            Parameter matrix = embedding.tokens();
            GroupGradient second =
                    allocator.accumulates() && matrix.isTrained()
                            ? allocator.secondGradient(matrix)
                            : null;
            return new Head(
                    own.norm(),
                    own.transform(),
                    matrix,
                    second == null ? null : second.view(0, matrix.spec()),
                    second);
        }
        ParameterSpec spec =
                ParameterSpec.matrix(
                        shape.model().headMatrix(), shape.outputRows(), Initial.NORMAL);
        Parameter matrix =
                allocator.head(
                        tied ? ParameterAllocator.TOKENS : "lm_head",
                        () -> allocator.allocate(spec.countedIf(!tied && shape.countsMatrices())));
        return new Head(own.norm(), own.transform(), matrix, matrix.gradients(), null);
    }

    /** Returns the parameters of which this rank holds something. */
    public List<Parameter> held() {
        return all.stream().filter(Parameter::isHeld).toList();
    }

    /** Returns those of {@link #held} that are trained. */
    public List<Parameter> trained() {
        return held().stream().filter(Parameter::isTrained).toList();
    }

    /** Returns those of {@link #held} that this rank reports. */
    public List<Parameter> counted() {
        return held().stream().filter(p -> p.spec().counted()).toList();
    }

    /** Returns all gradients of {@link #groups}, and the head's part of a tied matrix's. */
    public List<GroupGradient> gradients() {
        List<GroupGradient> all = new ArrayList<>();
        groups.stream()
                .filter(ParameterGroup::isTrained)
                .forEach(group -> all.add(group.trained().gradient()));
        if (head != null && head.second() != null) {
            all.add(head.second());
        }
        return all;
    }

    /** Returns how many columns the widest input of any adapter has on this rank; 0 without any. */
    public int widestAdapterInput() {
        return layers.stream()
                .flatMap(
                        layer ->
                                Stream.of(
                                        layer.queryKeyValue(),
                                        layer.attentionOutput(),
                                        layer.hidden(),
                                        layer.mlpOutput()))
                .flatMap(linear -> linear.adapters().stream())
                .mapToInt(adapter -> adapter.inner().spec().rows())
                .max()
                .orElse(0);
    }

    /** Returns the token table, or a tied head's copy of it, if this stage has one. */
    public @Nullable Parameter tokenTable() {
        return all.stream().filter(p -> p.name().equals(TOKEN_TABLE)).findFirst().orElse(null);
    }
}
