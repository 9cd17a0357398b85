package dev.penstock.runtime.model.stage;

import static java.util.Objects.requireNonNull;

import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.actors.collective.SoloGroup;
import dev.penstock.actors.spi.MemoryUse;
import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.SharedGradient;
import dev.penstock.actors.spi.StageGroups;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.actors.spi.StepResult;
import dev.penstock.actors.spi.TensorNorm;
import dev.penstock.actors.spi.TrainedState;
import dev.penstock.cuda.device.AttentionShape;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.RetentionShape;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.data.BatchSource;
import dev.penstock.runtime.model.activations.LayerActivations;
import dev.penstock.runtime.model.activations.StageStash;
import dev.penstock.runtime.model.activations.UnitActivations;
import dev.penstock.runtime.model.activations.Workspace;
import dev.penstock.runtime.model.layers.AdapterRoom;
import dev.penstock.runtime.model.layers.Attention;
import dev.penstock.runtime.model.layers.Compute;
import dev.penstock.runtime.model.layers.DividedRetention;
import dev.penstock.runtime.model.layers.DropoutKeys;
import dev.penstock.runtime.model.layers.FiniteGuard;
import dev.penstock.runtime.model.layers.HeadTurns;
import dev.penstock.runtime.model.layers.InputTokens;
import dev.penstock.runtime.model.layers.LossHead;
import dev.penstock.runtime.model.layers.LossLedger;
import dev.penstock.runtime.model.layers.NormGradients;
import dev.penstock.runtime.model.layers.PackedAttention;
import dev.penstock.runtime.model.layers.PackedRetention;
import dev.penstock.runtime.model.layers.PackedRows;
import dev.penstock.runtime.model.layers.Retention;
import dev.penstock.runtime.model.layers.RingAttention;
import dev.penstock.runtime.model.layers.RingBuffers;
import dev.penstock.runtime.model.layers.StageLayers;
import dev.penstock.runtime.model.layers.TensorShards;
import dev.penstock.runtime.model.layers.TurnTable;
import dev.penstock.runtime.model.layers.WholeAttention;
import dev.penstock.runtime.model.memory.StageScopes;
import dev.penstock.runtime.model.mesh.MeshGradients;
import dev.penstock.runtime.model.mesh.MeshShards;
import dev.penstock.runtime.model.parameters.OuterState;
import dev.penstock.runtime.model.parameters.Parameter;
import dev.penstock.runtime.model.parameters.ParameterInit;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.parameters.ParameterStream;
import dev.penstock.runtime.model.parameters.StageParameters;
import dev.penstock.runtime.model.parameters.StageTrained;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.PartTokens;
import dev.penstock.runtime.model.shape.ShardShape;
import dev.penstock.runtime.model.shape.Sharding;
import dev.penstock.runtime.model.shape.StageBudget;
import dev.penstock.runtime.model.shape.StageMemory;
import dev.penstock.runtime.model.shape.StageRole;
import dev.penstock.runtime.model.shape.SwapCommit;
import dev.penstock.runtime.model.swap.SwapSpace;
import dev.penstock.schedules.ir.LayerRange;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * A stage of a model on one device: some blocks, the embedding if it is the first, the head if it
 * is the last. All its memory is allocated when it is built and freed when it is closed.
 */
public final class GptStage implements StageProgram {
    private static final long NOTHING = -1;

    private final GptSettings settings;
    private final StageRole role;
    private final RankPlace place;
    private final BatchShape batch;
    private final Kernels kernels;
    private final FiniteGuard guard;
    private final TensorShards shards;
    private final @Nullable MeshShards mesh;
    private final StageScopes scopes;
    private final StageBuffers buffers;
    private final StageLayers layers;
    private final StepData data;
    private final StageOptimizer optimizer;
    private final StageGradients gradients;
    private final Map<Integer, List<UnitShape>> unitShapes = new HashMap<>();
    private final @Nullable PackedRows packed;
    private final @Nullable DropoutKeys dropout;
    private final List<Attention> attentions = new ArrayList<>();
    private final @Nullable NormGradients normGradients;
    private StepKind kind = StepKind.EVALUATE;

    /** The unit of the op under way. */
    private @Nullable WorkUnit current;

    /** What the loss of a training step is multiplied by; empty if it is not scaled. */
    private OptionalDouble lossScale = OptionalDouble.empty();

    /** The training step whose data is here. */
    private long begun = NOTHING;

    /** Whether backwards add to any gradient. */
    private final boolean trained;

    /** The lowest block of which a backward is needed. */
    private final int lowest;

    private final ParameterStream stream;
    private final Sharding sharding;
    private final @Nullable OuterAverage outer;
    private CollectiveGroup replicas = SoloGroup.GROUP;

    /** Where the second op of a pair runs; null if that is here. */
    private @Nullable GptStage beside;

    /**
     * @param scopes hold {@code buffers}; closed with this stage
     * @param main the stage of which this runs the second op of a pair: they have all in common
     *     that lasts longer than an op; null for a stage
     */
    private GptStage(
            GptSettings settings,
            StageRole role,
            Kernels kernels,
            StageScopes scopes,
            StageBuffers buffers,
            RankPools pools,
            RankPlace place,
            BatchSource batches,
            @Nullable GptStage main) {
        this.settings = settings;
        this.role = role;
        this.place = place;
        this.batch = settings.batchOfPart();
        this.kernels = kernels;
        this.scopes = scopes;
        this.buffers = buffers;
        guard = new FiniteGuard(kernels);
        dropout = buffers.dropoutKeys();
        ShardShape shape = settings.shape(role);
        MeshShards.Rooms rooms = buffers.mesh();
        mesh = rooms == null ? null : new MeshShards(kernels, shape, rooms);
        shards = new TensorShards(kernels, shape, buffers.allRows(), mesh);
        Compute compute =
                new Compute(
                        kernels,
                        settings.precision().multiply(),
                        settings.precision().kept(),
                        guard,
                        shards,
                        buffers.adapters(),
                        buffers.widened(),
                        buffers.projected(),
                        buffers.dropout());
        StageParameters parameters = buffers.parameters();
        sharding = Sharding.of(settings, place);
        lowest = settings.trained().lowestBackward(role);
        stream =
                ParameterStream.of(
                        parameters,
                        sharding,
                        lowest,
                        settings.zero().prefetchLayers(),
                        pools.gathers(),
                        kernels);
        PartTokens tokens = settings.tokens(place);
        if (batches.unequal()) {
            requireWholeSequences(settings, "micro-batches are unequal");
        }
        packed = batches.packed() ? packed(settings, main) : null;
        layers =
                new StageLayers(
                        compute,
                        shape,
                        role,
                        parameters,
                        stream,
                        block -> {
                            Attention attention = attention(shape, block);
                            attentions.add(attention);
                            return attention;
                        },
                        turns(),
                        packed == null ? tokens : packed,
                        buffers.logits());
        trained = settings.trained().stage(role);
        if (settings.trained().endsIn(role)) {
            layers.endBackwardsIn(lowest);
        }
        data =
                main != null
                        ? main.data
                        : new StepData(
                                buffers.shapes(),
                                batches,
                                settings,
                                place,
                                tokens,
                                buffers.inputs(),
                                buffers.ledger(),
                                packed);
        optimizer =
                main != null
                        ? main.optimizer
                        : new StageOptimizer(kernels, settings.optimizer(), parameters);
        gradients =
                main != null
                        ? main.gradients
                        : new StageGradients(kernels, parameters, sharding, settings, role, pools);
        normGradients =
                buffers.normGradients() == null
                        ? null
                        : new NormGradients(
                                kernels, shards, shape, parameters, buffers.normGradients());
        OuterState apart = buffers.outer();
        outer =
                apart == null
                        ? null
                        : new OuterAverage(
                                settings.outer().orElseThrow(), apart, place.data(), kernels);
    }

    private static PackedRows packed(GptSettings settings, @Nullable GptStage main) {
        requireWholeSequences(settings, "documents share rows");
        return main == null
                ? new PackedRows(settings.batch(), settings.shape().block().encoder() != null)
                : requireNonNull(main.packed).beside();
    }

    private static void requireWholeSequences(GptSettings settings, String where) {
        if (settings.grid().context() > 1) {
            throw new IllegalArgumentException(
                    "expected whole sequences where %s, got %d context parts"
                            .formatted(where, settings.grid().context()));
        }
    }

    private @Nullable HeadTurns turns() {
        TurnTable table = buffers.turns();
        return table == null ? null : table.ofUnits(kernels);
    }

    private Attention attention(ShardShape ofShard, int block) {
        int layer = role.firstLayer() + block;
        RetentionShape retention = ofShard.like(layer).retention();
        if (retention != null) {
            return retention(retention, block);
        }
        AttentionShape shape = ofShard.attention(layer);
        if (shape.bidirectional()) {
            requireWholeSequences(settings, "tokens see both ways");
            if (batch.sliced()) {
                throw new IllegalArgumentException(
                        "expected whole sequences, as a token needs the keys of later ones");
            }
        }
        DType multiply = settings.precision().multiply();
        RingBuffers scratch = buffers.ring();
        if (packed != null) {
            return new PackedAttention(kernels, multiply, shape, batch.context(), packed);
        }
        if (scratch == null) {
            return new WholeAttention(kernels, multiply, shape);
        }
        return new RingAttention(
                kernels,
                multiply,
                shape,
                batch,
                settings.tokensOfParts(),
                place.context(),
                scratch);
    }

    private Attention retention(RetentionShape shape, int block) {
        StageStash stash = buffers.stash();
        Tensor room = requireNonNull(buffers.state());
        boolean divided = settings.grid().context() > 1;
        var whole =
                new Retention(
                        kernels,
                        shape,
                        settings.shape().block().norm().epsilon(),
                        divided
                                ? () -> stash.allStates(requireNonNull(current), block)
                                : () -> stash.states(requireNonNull(current), block));
        if (divided) {
            return new DividedRetention(
                    whole,
                    settings.tokensOfParts(),
                    place.context(),
                    new TokenBlocks(batch.sequences(), batch.context(), 0, settings.batch().grid()),
                    room);
        }
        return packed == null ? whole : new PackedRetention(whole, batch.context(), packed, room);
    }

    /**
     * Allocates the stages of a rank in {@code device}'s memory and fills their parameters; frees
     * what it allocated if that fails. The first stage holds the memory that all of them share.
     */
    static List<GptStage> build(
            GptSettings settings,
            List<StageRole> roles,
            List<StageBudget> budgets,
            List<RankProgram> programs,
            RankPlace place,
            boolean pairsAtOnce,
            Device device,
            BatchSource batches,
            ParameterSource source) {
        List<StageScopes> scopes = new ArrayList<>();
        try {
            for (StageRole role : roles) {
                scopes.add(
                        StageScopes.of(
                                settings,
                                device.memory(),
                                "stage " + role.stage(),
                                place.data(),
                                role.stage(),
                                source.swapped().isPresent()));
            }
            RankBuffers allocated =
                    RankBuffers.allocate(
                            scopes, settings, roles, place, budgets, programs, pairsAtOnce);
            var init = new ParameterInit(source, settings.seed(), settings.shape().layers());
            List<GptStage> stages = new ArrayList<>();
            for (int i = 0; i < roles.size(); i++) {
                StageBuffers buffers = allocated.stages().get(i);
                if (source.swapped().isEmpty()) {
                    init.fill(buffers.parameters(), device.kernels());
                }
                AdapterRoom adapters = buffers.adapters();
                if (adapters != null) {
                    adapters.fill(settings.fineTuning().adapters().orElseThrow().scale());
                }
                TurnTable turns = buffers.turns();
                if (turns != null) {
                    turns.fill(settings.shape(), settings.tokens(place).runs());
                }
                var stage =
                        new GptStage(
                                settings,
                                roles.get(i),
                                device.kernels(),
                                scopes.get(i),
                                buffers,
                                allocated.pools(),
                                place,
                                batches,
                                null);
                stages.add(stage);
                if (pairsAtOnce) {
                    stage.beside =
                            new GptStage(
                                    settings,
                                    roles.get(i),
                                    device.kernels(),
                                    scopes.get(i),
                                    allocated.beside().get(i),
                                    allocated.pools(),
                                    place,
                                    batches,
                                    stage);
                }
                stage.fill(source);
            }
            return stages;
        } catch (RuntimeException e) {
            scopes.reversed().forEach(StageScopes::close);
            throw e;
        }
    }

    /** What is swapped gets its first values, or those of an update that was committed. */
    private void fill(ParameterSource source) {
        source.swapped().ifPresent(optimizer::continueAfter);
        if (outer != null) {
            outer.fill(source);
        }
        SwapSpace swap = scopes.swap();
        if (swap != null) {
            swap.complete();
        }
    }

    /**
     * Builds a stage without memory.
     *
     * @param kernels that look only at the shapes of tensors
     */
    static GptStage counting(
            GptSettings settings,
            StageRole role,
            StageBudget budget,
            RankPlace place,
            Kernels kernels) {
        StageScopes scopes = StageScopes.counting(settings, "stage " + role.stage());
        RankBuffers allocated =
                RankBuffers.allocate(
                        List.of(scopes),
                        settings,
                        List.of(role),
                        place,
                        List.of(budget),
                        List.of(),
                        false);
        return new GptStage(
                settings,
                role,
                kernels,
                scopes,
                allocated.stages().getFirst(),
                allocated.pools(),
                place,
                (_, _, _, _) -> {},
                null);
    }

    /** Returns the bytes held on the device. */
    public StageMemory memory() {
        return scopes.memory();
    }

    @Override
    public int stage() {
        return role.stage();
    }

    @Override
    public int firstLayer() {
        return role.firstLayer();
    }

    @Override
    public int layers() {
        return role.layers();
    }

    @Override
    public int boundaryRows(int slice) {
        return settings.shape(role).ownRows(batch.rows(slice));
    }

    @Override
    public int boundaryRows(WorkUnit unit) {
        return shape(unit).ownRows();
    }

    @Override
    public int boundarySequences() {
        return boundaryRows(0) == batch.rows(0) ? batch.sequences() : 1;
    }

    @Override
    public int dataRow(int microBatch, int sequence) {
        return data.row(microBatch, sequence);
    }

    @Override
    public int boundaryColumns() {
        return settings.boundaryColumns();
    }

    @Override
    public void connect(StageGroups newGroups) {
        shards.connect(newGroups);
        if (beside != null) {
            beside.shards.connect(requireNonNull(newGroups.beside(), "no groups of second ops"));
            beside.replicas = newGroups.replicas();
        }
        if (outer == null) {
            replicas = newGroups.replicas();
        } else {
            outer.connect(newGroups.replicas());
            replicas = SoloGroup.GROUP;
        }
        boolean fits =
                settings.wired()
                        ? replicas.size() <= sharding.replicas()
                        : replicas.size() == sharding.replicas();
        if (!fits) {
            throw new IllegalArgumentException(
                    "stage %d expected %d replicas, got a group of %d"
                            .formatted(stage(), sharding.replicas(), replicas.size()));
        }
        LossLedger ledger = buffers.ledger();
        if (ledger != null) {
            ledger.share(newGroups.replicas().size() * settings.grid().mesh().sequenceParts());
        }
        stream.connect(replicas);
        CollectiveGroup context = newGroups.context();
        if (context.size() != settings.grid().context() || context.index() != place.context()) {
            throw new IllegalArgumentException(
                    "expected a group for context part %d of %d, got member %d of %d"
                            .formatted(
                                    place.context(),
                                    settings.grid().context(),
                                    context.index(),
                                    context.size()));
        }
        attentions.forEach(attention -> attention.connect(context));
    }

    @Override
    public void scaleLoss(OptionalDouble scale) {
        lossScale = scale;
        if (beside != null) {
            beside.lossScale = scale;
        }
        gradients.carry((float) scale.orElse(1));
    }

    @Override
    public void beginStep(StepKind newKind, long step) {
        begin(newKind, step);
        if (outer != null && kind == StepKind.TRAIN) {
            outer.beginTraining(step);
        } else if (outer != null) {
            outer.beginEvaluation();
        }
        data.read(kind, step);
        if (dropout != null && kind == StepKind.TRAIN) {
            dropout.draw(
                    settings.seed(),
                    step,
                    (long) settings.firstMicroBatch(place) * batch.sequences(),
                    settings.tokens(place),
                    settings.batch().context());
        }
    }

    @Override
    public void resumeStep(long step) {
        if (begun != step || gradients.folded().isEmpty()) {
            beginStep(StepKind.TRAIN, step);
            return;
        }
        beginPass(StepKind.TRAIN, step);
        gradients.resume();
    }

    /**
     * Begins a step without reading its data.
     *
     * @param tokens of a sequence of its first micro-batch
     */
    void begin(StepKind newKind, long step, int tokens) {
        begin(newKind, step);
        buffers.shapes().set(0, tokens == settings.batch().context() ? batch.context() : tokens);
    }

    /** Begins a step without reading its data. */
    private void begin(StepKind newKind, long step) {
        beginPass(newKind, step);
        begun = NOTHING;
        if (kind == StepKind.TRAIN) {
            replicas = outer == null ? replicas : outer.summing(step);
            gradients.begin();
            optimizer.begin(step);
            begun = step;
        }
    }

    private void beginPass(StepKind newKind, long step) {
        kind = newKind;
        guard.atStep(step, kind == StepKind.TRAIN && lossScale.isPresent());
        if (beside != null) {
            beside.kind = newKind;
            beside.guard.atStep(step, kind == StepKind.TRAIN && lossScale.isPresent());
        }
        stream.beginPass();
        buffers.stash().clear();
        if (dropout != null) {
            dropout.begin(kind == StepKind.TRAIN);
        }
    }

    /** Returns the sizes of a unit in the current step. */
    private UnitShape shape(WorkUnit unit) {
        BatchShape ofMicroBatch = buffers.shapes().of(unit.microBatch());
        return unitShapes
                .computeIfAbsent(ofMicroBatch.context(), _ -> unitShapes(ofMicroBatch))
                .get(unit.slice());
    }

    private List<UnitShape> unitShapes(BatchShape ofMicroBatch) {
        ShardShape shape = settings.shape(role);
        int logitsRows = LossHead.logitsRows(shape, batch);
        return IntStream.range(0, batch.slices())
                .mapToObj(
                        slice ->
                                UnitShape.of(
                                        ofMicroBatch,
                                        slice,
                                        shape,
                                        logitsRows,
                                        buffers.workspace()))
                .toList();
    }

    private void at(WorkUnit unit) {
        if (outer != null) {
            outer.advance();
        }
        guard.atUnit(unit);
        current = unit;
        if (packed != null) {
            packed.at(unit.microBatch());
        }
        if (dropout != null) {
            dropout.at(unit.microBatch(), unit.slice());
        }
    }

    @Override
    public StageProgram beside() {
        return beside == null ? this : beside;
    }

    @Override
    public void forward(WorkUnit unit, @Nullable Tensor input, @Nullable Tensor output) {
        at(unit);
        StageStash stash = buffers.stash();
        TokenBlocks blocks = shape(unit).blocks();
        UnitActivations a = stash.takeUnit(unit);
        layers.forward(tokens(unit), input, a, stash.queryKeyValues(unit), output, blocks);
        if (kind == StepKind.EVALUATE) {
            evaluate(unit, a);
        } else if (stash.isForwardOnly()) {
            freeForwardOnly(unit);
        }
        guard.verify();
    }

    @Override
    public void park(WorkUnit unit) {
        buffers.stash().park(unit);
    }

    @Override
    public void recompute(WorkUnit unit, @Nullable Tensor input) {
        at(unit);
        StageStash stash = buffers.stash();
        UnitActivations a = stash.takeAgain(unit);
        layers.recompute(
                tokens(unit),
                input,
                a,
                stash.queryKeyValues(unit),
                batch.sliced(),
                shape(unit).blocks());
        guard.verify();
    }

    @Override
    public void offload(WorkUnit unit) {
        buffers.stash().offload(unit);
    }

    @Override
    public void reload(WorkUnit unit) {
        buffers.stash().reload(unit);
    }

    @Override
    public Copies copies() {
        StageStash stash = buffers.stash();
        SwapSpace swap = scopes.swap();
        return new Copies(
                stash.toHostNanos(),
                stash.backNanos(),
                swap == null ? 0 : swap.loadNanos(),
                swap == null ? 0 : swap.leaveNanos(),
                stash.waitNanos());
    }

    @Override
    public List<MemoryUse> hostMemory() {
        return List.of(
                        new MemoryUse(MemoryUse.HOST_ACTIVATIONS, scopes.host().peakBytes()),
                        new MemoryUse(MemoryUse.ON_DISK, scopes.diskBytes()))
                .stream()
                .filter(use -> use.peakBytes() > 0)
                .toList();
    }

    private void evaluate(WorkUnit unit, UnitActivations a) {
        LossHead head = layers.head();
        if (head != null) {
            stream.evaluation();
            stream.enter();
            head.evaluate(
                    requireNonNull(a.head()),
                    requireNonNull(buffers.ledger()),
                    unit.microBatch(),
                    shape(unit).headChunks());
            stream.leave();
        }
        freeForwardOnly(unit);
    }

    /**
     * Returns where an evaluation's forward leaves the logits of the last chunk of rows, 0 in rows
     * whose loss does not count; null on stages without a head.
     */
    @Nullable Tensor logits() {
        return buffers.logits();
    }

    private void freeForwardOnly(WorkUnit unit) {
        buffers.stash().freeUnit(unit);
        if (unit.slice() == lastSlice()) {
            buffers.stash().freeQueryKeyValues(unit);
        }
    }

    @Override
    public void backward(
            WorkUnit unit,
            @Nullable Tensor input,
            @Nullable Tensor outputGradient,
            @Nullable Tensor inputGradient) {
        backward(unit, input, outputGradient, inputGradient, true);
        free(unit);
    }

    @Override
    public void backwardInput(
            WorkUnit unit,
            @Nullable Tensor input,
            @Nullable Tensor outputGradient,
            @Nullable Tensor inputGradient) {
        backward(unit, input, outputGradient, inputGradient, !trained);
        if (!trained) {
            free(unit);
        }
    }

    /**
     * Runs the backward down to the lowest block of which anybody needs it: all of it, or all of it
     * except the gradients of the blocks' weights. The gradients of the head's matrix, whose logits
     * exist only for a moment, and those of the tables, norms and biases are computed here in any
     * case.
     */
    private void backward(
            WorkUnit unit,
            @Nullable Tensor input,
            @Nullable Tensor outputGradient,
            @Nullable Tensor inputGradient,
            boolean whole) {
        at(unit);
        gradients.open(replicas, unit.microBatch());
        StageStash stash = buffers.stash();
        TokenBlocks blocks = shape(unit).blocks();
        Workspace work = shape(unit).work();
        UnitActivations a = stash.unit(unit);
        stream.backward();
        stream.enter();
        Tensor dStream = beginBackward(unit, a, input, outputGradient, inputGradient, work, blocks);
        stream.leave();
        if (batch.sliced() && unit.slice() == lastSlice()) {
            stash.takeGradients(unit).forEach(kernels::zero);
        }
        if (!whole) {
            stash.keepRecomputed(unit);
        }
        for (int i = layers.size() - 1; i >= lowest; i--) {
            stream.enter();
            Tensor x = a.stream(i, input);
            LayerActivations layer = stash.layer(unit, i);
            Tensor qkv = stash.queryKeyValues(unit, i);
            if (buffers.recomputed().runsAgain(i)) {
                layers.recompute(i, x, layer, qkv, batch.sliced(), blocks);
            }
            Tensor dQkv = dQkv(unit, i);
            if (whole) {
                layers.backward(i, x, layer, qkv, dQkv, dStream, work, blocks);
            } else {
                Tensor kept = a.keptOutputGradient(i);
                layers.backwardInput(i, x, layer, qkv, dQkv, dStream, kept, work, blocks);
            }
            stream.leave();
        }
        if (role.first()) {
            layers.embeddingBackward(dStream, requireNonNull(tokens(unit)), blocks);
        }
        if (batch.sliced() && unit.slice() == 0) {
            stash.freeGradients(unit);
        }
        guard.verify();
        if (whole) {
            gradients.finish(unit.microBatch(), guard);
        }
    }

    @Override
    public void backwardWeight(WorkUnit unit) {
        if (!trained) {
            return;
        }
        at(unit);
        gradients.open(replicas, unit.microBatch());
        StageStash stash = buffers.stash();
        TokenBlocks blocks = shape(unit).blocks();
        Workspace work = shape(unit).work();
        UnitActivations a = stash.unit(unit);
        stream.backwardWeight();
        for (int i = layers.size() - 1; i >= lowest; i--) {
            stream.enter();
            layers.backwardWeight(
                    i,
                    stash.layer(unit, i),
                    stash.queryKeyValues(unit, i),
                    a.keptOutputGradient(i),
                    work,
                    blocks);
            stream.leave();
        }
        guard.verify();
        gradients.finish(unit.microBatch(), guard);
        free(unit);
    }

    /**
     * Brings the gradient of the last block's output to the tensor on which the blocks work in
     * place.
     */
    private Tensor beginBackward(
            WorkUnit unit,
            UnitActivations a,
            @Nullable Tensor input,
            @Nullable Tensor outputGradient,
            @Nullable Tensor inputGradient,
            Workspace work,
            TokenBlocks blocks) {
        LossHead head = layers.head();
        if (head != null) {
            Tensor dStream = inputGradient == null ? requireNonNull(work.dStream()) : inputGradient;
            head.backward(
                    a.stream(layers.size(), input),
                    requireNonNull(a.head()),
                    requireNonNull(buffers.ledger()),
                    unit.microBatch(),
                    shape(unit).headChunks(),
                    (float) lossScale.orElse(1) / data.tokens(),
                    dStream,
                    work,
                    blocks);
            return dStream;
        }
        if (inputGradient == null) {
            return requireNonNull(outputGradient);
        }
        kernels.copy(requireNonNull(outputGradient), inputGradient);
        return inputGradient;
    }

    /**
     * Returns the tensor to which attention's backward adds: kept across slices, or scratch for a
     * whole micro-batch.
     */
    private Tensor dQkv(WorkUnit unit, int layer) {
        Tensor scratch = buffers.dQueryKeyValue();
        if (scratch == null) {
            return buffers.stash().gradients(unit).get(layer);
        }
        int columns = buffers.stash().queryKeyValues(unit).get(layer).columns();
        Tensor rows =
                Workspace.narrow(scratch, columns)
                        .rows(0, buffers.shapes().of(unit.microBatch()).microBatchRows());
        if (packed != null || buffers.ring() != null) { // others write all of it
            kernels.zero(rows);
        }
        return rows;
    }

    private void free(WorkUnit unit) {
        StageStash stash = buffers.stash();
        stash.freeUnit(unit);
        if (stash.isFree(unit.microBatch())) {
            stash.freeQueryKeyValues(unit);
        }
    }

    @Override
    public Collective gather(LayerRange range, boolean rising) {
        return stream.gather(range, rising);
    }

    @Override
    public long gatherNanos() {
        return stream.gatherNanos();
    }

    @Override
    public void release(LayerRange range) {
        stream.release(range);
    }

    @Override
    public Collective reduceGradients() {
        if (replicas.size() > 1) {
            gradients.open(replicas);
            gradients.beginSums();
            sumNormGradients();
        } else if (gradients.folded().cardinality() == batch.microBatches()) {
            settle();
        }
        return gradients.reduce(replicas);
    }

    /** Completes exact sums of a stage without replicas. */
    private void settle() {
        if (gradients.isUnsettled()) {
            gradients.beginSums();
            sumNormGradients();
            gradients.settle();
        }
    }

    @Override
    public BitSet folded() {
        return gradients.folded();
    }

    /**
     * To be called before gradients are summed with replicas, which each hold parts of them
     * afterwards.
     */
    private void sumNormGradients() {
        if (normGradients != null) {
            normGradients.sum();
        }
        if (mesh != null) {
            MeshGradients.sum(mesh, settings.shape(role), buffers.parameters());
        }
    }

    @Override
    public List<SharedGradient> sharedGradients() {
        return gradients.shared();
    }

    @Override
    public StepResult finishStep() {
        LossLedger ledger = buffers.ledger();
        OptionalDouble loss =
                ledger == null || !settings.shape(role).countsLosses()
                        ? OptionalDouble.empty()
                        : OptionalDouble.of(ledger.mean());
        OptionalDouble accuracy = loss.isEmpty() ? loss : requireNonNull(ledger).accuracy();
        if (kind == StepKind.EVALUATE) {
            return new StepResult(loss, List.of(), OptionalInt.empty(), accuracy);
        }
        if (replicas.size() == 1) {
            if (sharding.exact()) {
                settle();
            } else {
                sumNormGradients();
            }
        }
        gradients.complete();
        List<TensorNorm> norms = speaks() ? norms() : List.of();
        gradients.seal(begun);
        return new StepResult(loss, norms, overflow(loss, norms), accuracy);
    }

    /** Returns this stage if the loss is scaled and something is not finite. */
    private OptionalInt overflow(OptionalDouble loss, List<TensorNorm> norms) {
        boolean finite =
                !guard.overflowed()
                        && (beside == null || !beside.guard.overflowed())
                        && Double.isFinite(loss.orElse(0))
                        && norms.stream().allMatch(norm -> Double.isFinite(norm.squaredNorm()));
        return finite || lossScale.isEmpty() ? OptionalInt.empty() : OptionalInt.of(stage());
    }

    /**
     * Returns the norms of the gradients. Those of replicas that take steps alone are of the means
     * of their own tokens, and count so that the run's norm is the root of the mean of their
     * squares.
     */
    private List<TensorNorm> norms() {
        if (outer == null) {
            return gradients.norms();
        }
        List<TensorNorm> norms = gradients.norms(replicas);
        double share = (double) settings.grid().data() / replicas.size();
        return norms.stream()
                .map(norm -> new TensorNorm(norm.parameter(), share * norm.squaredNorm()))
                .toList();
    }

    @Override
    public void skipped(long steps) {
        optimizer.skipped(steps);
    }

    @Override
    public void update(long step, double clipFactor) {
        // gradients of replicas that take steps alone are divided by the tokens of all
        boolean sums = outer == null || outer.sumsIn(step);
        double factor = sums ? clipFactor : clipFactor * settings.grid().data();
        SwapSpace swap = scopes.swap();
        if (swap == null) {
            optimizer.update(step, factor);
        } else {
            SwapCommit commit = optimizer.commit(step, factor);
            swap.commit(commit);
            optimizer.renew(commit);
        }
        gradients.end();
        if (outer != null) {
            outer.afterUpdate(step);
        }
        kernels.finish();
    }

    /** Returns whether this rank reports for all that hold the same; others may be absent. */
    private boolean speaks() {
        return !settings.wired() || replicas.index() == 0;
    }

    @Override
    public List<NamedTensor> state() {
        if (outer != null) {
            return outer.tensors();
        }
        return sharding.speaks() && speaks()
                ? buffers.parameters().counted().stream().flatMap(p -> p.state().stream()).toList()
                : List.of();
    }

    @Override
    public List<NamedTensor> gradients() {
        boolean dumps = outer == null ? speaks() : place.data() == 0;
        return dumps ? gradients.tensors() : List.of();
    }

    /** Returns all parameters of which this rank holds something. */
    public List<Parameter> parameters() {
        return buffers.parameters().all();
    }

    @Override
    public TrainedState trained() {
        return new StageTrained(buffers.parameters().groups(), kernels, gradients::given);
    }

    private @Nullable Tensor tokens(WorkUnit unit) {
        InputTokens inputs = buffers.inputs();
        return inputs == null ? null : inputs.of(unit.microBatch(), unit.slice());
    }

    private int lastSlice() {
        return batch.slices() - 1;
    }

    @Override
    public void close() {
        buffers.stash().settle();
        scopes.close();
    }
}
