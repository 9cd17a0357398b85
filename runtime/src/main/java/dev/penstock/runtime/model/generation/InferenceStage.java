package dev.penstock.runtime.model.generation;

import static java.util.Objects.requireNonNull;

import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.SharedGradient;
import dev.penstock.actors.spi.StageGroups;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.actors.spi.StepResult;
import dev.penstock.actors.spi.TrainedState;
import dev.penstock.cuda.device.AttentionShape;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.RetentionShape;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.activations.UnitActivations;
import dev.penstock.runtime.model.activations.Workspace;
import dev.penstock.runtime.model.layers.Attention;
import dev.penstock.runtime.model.layers.Compute;
import dev.penstock.runtime.model.layers.FiniteGuard;
import dev.penstock.runtime.model.layers.HeadTurns;
import dev.penstock.runtime.model.layers.LossHead;
import dev.penstock.runtime.model.layers.StageLayers;
import dev.penstock.runtime.model.layers.TensorShards;
import dev.penstock.runtime.model.layers.TextAttention;
import dev.penstock.runtime.model.layers.TextRetention;
import dev.penstock.runtime.model.layers.TurnTable;
import dev.penstock.runtime.model.memory.Carver;
import dev.penstock.runtime.model.memory.StageScopes;
import dev.penstock.runtime.model.parameters.ParameterAllocator;
import dev.penstock.runtime.model.parameters.ParameterInit;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.parameters.ParameterStream;
import dev.penstock.runtime.model.parameters.StageParameters;
import dev.penstock.runtime.model.parameters.StageTrained;
import dev.penstock.runtime.model.shape.FeedRows;
import dev.penstock.runtime.model.shape.HeldWeights;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.PartTokens;
import dev.penstock.runtime.model.shape.Precision;
import dev.penstock.runtime.model.shape.ShardShape;
import dev.penstock.runtime.model.shape.StageMemory;
import dev.penstock.runtime.model.shape.StageRole;
import dev.penstock.schedules.ir.WorkUnit;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * A stage of a model that runs forwards only: the layers of training over slices of texts that
 * grow. The keys and values of every text's earlier tokens are kept, so that a new token costs one
 * row. A unit has rows of several texts, which are multiplied together: {@link FeedRows}.
 */
public final class InferenceStage implements StageProgram {
    /**
     * The reduction block of training: attention works in such blocks and so gives the same bits.
     */
    private static final int REDUCTION_BLOCK = 128;

    private final ModelShape shape;
    private final StageRole role;
    private final Kernels kernels;
    private final DType multiply;
    private final FiniteGuard guard;
    private final TextFeed texts;
    private final StageScopes scopes;
    private final StageLayers layers;
    private final @Nullable Tensor tokens;

    /** Entry i: as block i sees it. */
    private final List<Tensor> queryKeyValues;

    private final UnitActivations largest;
    private final @Nullable Tensor choosing;
    private final ShardShape whole;
    private final @Nullable CarriedFeeds carried;
    private final Map<Integer, UnitActivations> byRows = new HashMap<>();
    private @Nullable FeedRows underWay;

    private InferenceStage(
            ModelShape shape,
            StageRole role,
            Precision precision,
            HeldWeights held,
            Kernels kernels,
            StageScopes scopes,
            TextFeed texts,
            ParameterSource source,
            boolean apart) {
        this.shape = shape;
        carried = apart ? new CarriedFeeds(shape.width(), texts.texts()) : null;
        this.role = role;
        this.kernels = kernels;
        multiply = precision.multiply();
        this.texts = texts;
        this.scopes = scopes;
        guard = new FiniteGuard(kernels);
        whole = ShardShape.whole(shape);
        StageParameters parameters =
                StageParameters.allocate(
                        ParameterAllocator.forForward(scopes, precision, held), whole, role);
        new ParameterInit(source, 0, shape.layers()).fill(parameters, kernels);
        layers =
                new StageLayers(
                        new Compute(
                                kernels,
                                multiply,
                                DType.F32,
                                guard,
                                new TensorShards(kernels, whole, null),
                                null,
                                null,
                                null),
                        whole,
                        role,
                        parameters,
                        ParameterStream.resident(),
                        this::attention,
                        turns(),
                        _ -> rows().places(),
                        role.last()
                                ? LossHead.logitsScratch(
                                        scopes.scratch(), whole, texts.rowsWithLogits())
                                : null);
        int rows = texts.sliceRows().stream().mapToInt(Integer::intValue).max().orElse(1);
        tokens = role.first() ? scopes.activations().tensor("tokens", DType.I32, 1, rows) : null;
        Tensor queryKeyValue =
                scopes.activations()
                        .tensor(
                                "queries, keys and values of a slice",
                                DType.F32,
                                rows,
                                whole.queryKeyValueColumns());
        queryKeyValues =
                IntStream.range(role.firstLayer(), role.firstLayer() + role.layers())
                        .map(layer -> whole.like(layer).queryKeyValueColumns())
                        .mapToObj(columns -> Workspace.narrow(queryKeyValue, columns))
                        .toList();
        choosing =
                role.last()
                        ? scopes.scratch()
                                .tensor(
                                        "rows that choose",
                                        DType.F32,
                                        texts.rowsWithLogits(),
                                        shape.width())
                        : null;
        largest =
                Carver.carve(
                        scopes.activations(),
                        "activations of a slice",
                        carver -> UnitActivations.carveForwardOnly(carver, whole, role, rows));
    }

    /** Same as {@link #build} with weights that are held in F32. */
    public static InferenceStage build(
            ModelShape shape,
            StageRole role,
            Precision precision,
            Device device,
            TextFeed texts,
            ParameterSource source) {
        return build(shape, role, precision, HeldWeights.FLOAT32, device, texts, source);
    }

    /**
     * Allocates a stage in {@code device}'s memory and reads its parameters.
     *
     * @param held how weights are held
     * @param source the source of all parameters
     */
    public static InferenceStage build(
            ModelShape shape,
            StageRole role,
            Precision precision,
            HeldWeights held,
            Device device,
            TextFeed texts,
            ParameterSource source) {
        return build(shape, role, precision, held, device, texts, source, false);
    }

    /**
     * The same of stages that may be in several processes.
     *
     * @param apart whether what a unit feeds travels with its rows, see {@link InferenceStages}
     */
    static InferenceStage build(
            ModelShape shape,
            StageRole role,
            Precision precision,
            HeldWeights held,
            Device device,
            TextFeed texts,
            ParameterSource source,
            boolean apart) {
        StageScopes scopes = new StageScopes(device.memory(), "stage " + role.stage());
        try {
            return new InferenceStage(
                    shape, role, precision, held, device.kernels(), scopes, texts, source, apart);
        } catch (RuntimeException e) {
            scopes.close();
            throw e;
        }
    }

    /** Builds the attention of a block of this stage, with room for what it keeps of the texts. */
    private Attention attention(int block) {
        int layer = role.firstLayer() + block;
        RetentionShape retention = whole.like(layer).retention();
        if (retention != null) {
            return retention(retention, block);
        }
        Tensor kept =
                scopes.keyValues()
                        .tensor(
                                "queries, keys and values of texts, h.%d".formatted(layer),
                                DType.F32,
                                texts.keptTokens(),
                                whole.like(layer).queryKeyValueColumns());
        return new TextAttention(
                kernels, multiply, window(whole.attention(layer)), grid(shape), this::rows, kept);
    }

    private Attention retention(RetentionShape retention, int block) {
        int rows = texts.sliceRows().stream().mapToInt(Integer::intValue).max().orElse(1);
        return new TextRetention(
                kernels,
                retention,
                shape.block().norm().epsilon(),
                grid(shape),
                this::rows,
                scopes.keyValues()
                        .tensor(
                                "states of texts, h.%d".formatted(role.firstLayer() + block),
                                DType.F32,
                                texts.texts(),
                                retention.stateColumns()),
                scopes.scratch()
                        .tensor(
                                "states of a slice, h.%d".formatted(role.firstLayer() + block),
                                DType.F32,
                                TextRetention.chunkRows(rows, grid(shape)),
                                retention.stateColumns()));
    }

    /** Returns the block of attention's sums: keys that are dropped fill whole ones. */
    public static int grid(ModelShape shape) {
        return Math.min(REDUCTION_BLOCK, shape.context());
    }

    /** Returns an attention to no more tokens than the model reads at a time. */
    private AttentionShape window(AttentionShape layer) {
        return texts.cachedTokens() <= shape.context()
                ? layer
                : new AttentionShape(
                        layer.heads(),
                        layer.keyHeads(),
                        layer.headSize(),
                        Math.min(layer.window(), shape.context()),
                        layer.scale());
    }

    /** Builds the turns of heads for all places of tokens; null where heads do not turn. */
    private @Nullable HeadTurns turns() {
        TurnTable table = TurnTable.allocate(scopes.scratch(), shape, texts.places());
        if (table == null) {
            return null;
        }
        table.fill(shape, List.of(new PartTokens.Run(0, 0, texts.places())));
        return table.ofTexts(kernels, this::rows);
    }

    private FeedRows rows() {
        return requireNonNull(underWay);
    }

    @Override
    public int stage() {
        return role.stage();
    }

    @Override
    public int boundaryRows(int slice) {
        return texts.sliceRows().get(slice) + (carried == null ? 0 : carried.rows());
    }

    @Override
    public int boundaryColumns() {
        return shape.width();
    }

    @Override
    public void connect(StageGroups groups) {
        // an inference stage belongs to no groups
    }

    @Override
    public void interrupt(String cause) {
        if (role.first()) {
            texts.interrupt(cause);
        }
    }

    @Override
    public void beginStep(StepKind kind, long step) {
        guard.atStep(step, false);
        texts.begin(stage(), step);
    }

    /** Feeds what the unit's texts have for the slice, in the first rows of the tensors. */
    @Override
    public void forward(WorkUnit unit, @Nullable Tensor input, @Nullable Tensor output) {
        FeedRows feeds = feeds(unit, input);
        boolean feeding = feeds != null && (!role.first() || readTokens(feeds));
        if (carried != null && output != null) {
            carried.write(feeding ? feeds : null, output);
        }
        if (feeds == null || !feeding) {
            return;
        }
        underWay = feeds;
        guard.atUnit(unit);
        int rows = feeds.count();
        UnitActivations a = byRows.computeIfAbsent(rows, n -> largest.first(n, n));
        layers.forward(
                tokens == null ? null : tokens.columns(0, rows),
                input == null ? null : input.rows(0, rows),
                a,
                queryKeyValues,
                output == null ? null : output.rows(0, rows),
                new TokenBlocks(1, rows, 0, rows));
        guard.verify();
        if (role.last()) {
            choose(feeds, requireNonNull(a.head()).normed());
        }
    }

    /** The last stage is where the first one is, which decides what is fed. */
    private @Nullable FeedRows feeds(WorkUnit unit, @Nullable Tensor input) {
        return carried == null || role.first() || role.last()
                ? texts.feed(unit.microBatch(), unit.slice())
                : carried.read(requireNonNull(input));
    }

    /** Returns false if all texts have ended in the meantime. */
    private boolean readTokens(FeedRows feeds) {
        int[] read = texts.await(feeds);
        if (read == null) {
            return false;
        }
        requireNonNull(tokens).columns(0, read.length).writeIndices(MemorySegment.ofArray(read));
        return true;
    }

    /** A row after which a token is chosen. */
    private record Chosen(int text, int place, int row) {}

    /** Chooses the tokens after the rows that ask for it, with one product for as many as fit. */
    private void choose(FeedRows feeds, Tensor normed) {
        List<Chosen> rows = new ArrayList<>();
        for (FeedRows.Run run : feeds.runs()) {
            for (int back = texts.choosing(run) - 1; back >= 0; back--) {
                rows.add(new Chosen(run.text(), run.feed().end() - 1 - back, run.lastRow() - back));
            }
        }
        for (int from = 0; from < rows.size(); from += texts.rowsWithLogits()) {
            int to = Math.min(rows.size(), from + texts.rowsWithLogits());
            chooseTogether(rows.subList(from, to), normed);
        }
    }

    private void chooseTogether(List<Chosen> rows, Tensor normed) {
        Tensor last = requireNonNull(choosing).rows(0, rows.size());
        for (int i = 0; i < rows.size(); i++) {
            kernels.copy(normed.rows(rows.get(i).row(), 1), last.rows(i, 1));
        }
        Tensor logits = requireNonNull(layers.head()).logits(last);
        MemorySegment contents = logits.contents();
        long rowBytes = (long) logits.columns() * Float.BYTES;
        for (int i = 0; i < rows.size(); i++) {
            long at = (long) i * logits.stride() * Float.BYTES;
            float[] row = contents.asSlice(at, rowBytes).toArray(ValueLayout.JAVA_FLOAT);
            texts.choose(rows.get(i).text(), rows.get(i).place(), row);
        }
    }

    /** Inference measures no loss: the last stage returns 0 in its place. */
    @Override
    public StepResult finishStep() {
        return new StepResult(
                role.last() ? OptionalDouble.of(0) : OptionalDouble.empty(), List.of());
    }

    @Override
    public void backward(
            WorkUnit unit,
            @Nullable Tensor input,
            @Nullable Tensor outputGradient,
            @Nullable Tensor inputGradient) {
        throw forwardOnly();
    }

    @Override
    public void backwardInput(
            WorkUnit unit,
            @Nullable Tensor input,
            @Nullable Tensor outputGradient,
            @Nullable Tensor inputGradient) {
        throw forwardOnly();
    }

    @Override
    public void backwardWeight(WorkUnit unit) {
        throw forwardOnly();
    }

    @Override
    public void update(long step, double clipFactor) {
        throw forwardOnly();
    }

    private UnsupportedOperationException forwardOnly() {
        return new UnsupportedOperationException(
                "stage %d was built for inference and runs forward only".formatted(stage()));
    }

    @Override
    public List<SharedGradient> sharedGradients() {
        return List.of();
    }

    @Override
    public List<NamedTensor> state() {
        return List.of();
    }

    @Override
    public List<NamedTensor> gradients() {
        return List.of();
    }

    @Override
    public TrainedState trained() {
        return new StageTrained(List.of(), kernels, () -> {});
    }

    /** Returns the bytes held on the device. */
    public StageMemory memory() {
        return scopes.memory();
    }

    /** Also releases other stages that are waiting for tokens from this one. */
    @Override
    public void close() {
        if (carried != null && role.first()) {
            texts.interrupt("its first stage has ended");
        } else {
            texts.stop();
        }
        scopes.close();
    }
}
