package dev.penstock.runtime.model.shape;

import dev.penstock.actors.collective.TensorMesh;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.cuda.device.DType;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.IntStream;

/**
 * All settings that decide what the stages of a run compute.
 *
 * @param seed of the initial parameters and of dropout; they do not depend on the partition
 * @param recomputedBlocks transformer blocks that keep only their input and run again in the
 *     backward; no effect in a stage whose backwards come in two parts
 * @param grid the dimensions of parallelism; the batch is that of one replica unless they are wired
 * @param zero what replicas divide among themselves
 * @param sequence whether tensor shards divide among themselves the work that each would otherwise
 *     do for all rows of a unit
 * @param fineTuning what is trained
 * @param dropout probability with which an element of the embeddings, or of what a branch of a
 *     block adds, is dropped in training
 * @param gradientSum how gradients of micro-batches are added up
 * @param outer how replicas that take steps alone are brought together; empty where they add up
 *     their gradients in every step
 * @param wired whether replicas share the micro-batches of the step as the order says: the batch is
 *     then that of all of them
 * @param offloadFolder where activations go that leave the device; empty for the host's memory
 */
public record GptSettings(
        ModelShape shape,
        StagePartition partition,
        BatchShape batch,
        Precision precision,
        AdamWSettings optimizer,
        long seed,
        Set<Integer> recomputedBlocks,
        RankGrid grid,
        ZeroSettings zero,
        boolean sequence,
        FineTuning fineTuning,
        double dropout,
        GradientSum gradientSum,
        Optional<OuterSettings> outer,
        boolean wired,
        Optional<Path> offloadFolder) {
    private static final String TOKEN_TABLE = "wte.weight";

    public GptSettings {
        recomputedBlocks = Set.copyOf(recomputedBlocks);
        TensorMesh mesh = grid.mesh();
        int tensorShards = mesh.isThere() ? mesh.side() : grid.tensor();
        if (!(dropout >= 0 && dropout < 1)) {
            throw new IllegalArgumentException(
                    "dropout: expected a probability in [0, 1), got " + dropout);
        }
        if (partition.layers() != shape.layers()) {
            throw new IllegalArgumentException(
                    "the partition %s holds %d layers, but the model has %d"
                            .formatted(
                                    partition.layersPerStage(),
                                    partition.layers(),
                                    shape.layers()));
        }
        if (batch.context() != shape.context()) {
            throw new IllegalArgumentException(
                    "the slices %s hold %d tokens, but the model's context is %d"
                            .formatted(batch.sliceLengths(), batch.context(), shape.context()));
        }
        if (batch.sliceLengths().stream().anyMatch(length -> length % grid.context() != 0)) {
            throw new IllegalArgumentException(
                    "context parts hold equal numbers of a slice's tokens: expected slices of multiples of %d tokens, got %s"
                            .formatted(grid.context(), batch.sliceLengths()));
        }
        requireDivided("attention heads", shape.heads(), "heads", tensorShards);
        requireDivided(
                "heads of keys, with the heads of queries that share them,",
                shape.block().heads().keys(),
                "heads of keys",
                tensorShards);
        requireDivided(
                "columns of the hidden layer", shape.block().hidden(), "columns", tensorShards);
        List<Integer> rows =
                batch.sliceLengths().stream()
                        .map(length -> batch.sequences() * length / grid.context())
                        .toList();
        if (sequence && rows.stream().anyMatch(count -> count % tensorShards != 0)) {
            throw new IllegalArgumentException(
                    "tensor shards divide the rows of every unit: expected multiples of %d shards, got units of %s rows (%d sequences, slices of %s tokens, %d context parts)"
                            .formatted(
                                    tensorShards,
                                    rows,
                                    batch.sequences(),
                                    batch.sliceLengths(),
                                    grid.context()));
        }
        if (mesh.isThere()) {
            requireMesh(shape, batch, mesh);
        }
        if (shape.vocabulary() < tensorShards) {
            throw new IllegalArgumentException(
                    "every tensor shard holds tokens: expected a vocabulary of %d or more, got %d"
                            .formatted(tensorShards, shape.vocabulary()));
        }
        if (shape.outputs() < tensorShards) {
            throw new IllegalArgumentException(
                    "every tensor shard holds logits: expected %d classes or more, got %d"
                            .formatted(tensorShards, shape.outputs()));
        }
    }

    private static void requireMesh(ModelShape shape, BatchShape batch, TensorMesh mesh) {
        int side = mesh.side();
        int rows = mesh.matrixRowParts();
        int sequences = batch.sequences();
        if (sequences % mesh.sequenceParts() != 0
                || shape.width() % rows != 0
                || shape.width() % side != 0
                || shape.block().hidden() % rows != 0
                || shape.vocabulary() % rows != 0) {
            throw new IllegalArgumentException(
                    "a mesh of %d x %d x %d shards divides sequences by %d, and width, hidden columns and vocabulary by %d: expected multiples, got %d sequences in a micro-batch, width %d, %d hidden columns and a vocabulary of %d"
                            .formatted(
                                    mesh.rows(),
                                    mesh.columns(),
                                    mesh.depth(),
                                    mesh.sequenceParts(),
                                    rows,
                                    sequences,
                                    shape.width(),
                                    shape.block().hidden(),
                                    shape.vocabulary()));
        }
    }

    /** Settings of a run whose replicas each do their own micro-batches. */
    public GptSettings(
            ModelShape shape,
            StagePartition partition,
            BatchShape batch,
            Precision precision,
            AdamWSettings optimizer,
            long seed,
            Set<Integer> recomputedBlocks,
            RankGrid grid,
            ZeroSettings zero,
            boolean sequence,
            FineTuning fineTuning,
            double dropout,
            GradientSum gradientSum,
            Optional<OuterSettings> outer) {
        this(
                shape,
                partition,
                batch,
                precision,
                optimizer,
                seed,
                recomputedBlocks,
                grid,
                zero,
                sequence,
                fineTuning,
                dropout,
                gradientSum,
                outer,
                false,
                Optional.empty());
    }

    /** Settings of a run that trains everything and drops nothing. */
    public GptSettings(
            ModelShape shape,
            StagePartition partition,
            BatchShape batch,
            Precision precision,
            AdamWSettings optimizer,
            long seed,
            Set<Integer> recomputedBlocks,
            RankGrid grid,
            ZeroSettings zero,
            boolean sequence) {
        this(
                shape,
                partition,
                batch,
                precision,
                optimizer,
                seed,
                recomputedBlocks,
                grid,
                zero,
                sequence,
                FineTuning.FULL,
                0,
                GradientSum.FLOAT32,
                Optional.empty());
    }

    /** Returns these settings with other parameters trained. */
    public GptSettings training(FineTuning other) {
        return new GptSettings(
                shape,
                partition,
                batch,
                precision,
                optimizer,
                seed,
                recomputedBlocks,
                grid,
                zero,
                sequence,
                other,
                dropout,
                gradientSum,
                outer,
                wired,
                offloadFolder);
    }

    /** Returns these settings with another dropout. */
    public GptSettings dropping(double other) {
        return new GptSettings(
                shape,
                partition,
                batch,
                precision,
                optimizer,
                seed,
                recomputedBlocks,
                grid,
                zero,
                sequence,
                fineTuning,
                other,
                gradientSum,
                outer,
                wired,
                offloadFolder);
    }

    /** Returns these settings with gradients added up in another way. */
    public GptSettings summing(GradientSum other) {
        return new GptSettings(
                shape,
                partition,
                batch,
                precision,
                optimizer,
                seed,
                recomputedBlocks,
                grid,
                zero,
                sequence,
                fineTuning,
                dropout,
                other,
                outer,
                wired,
                offloadFolder);
    }

    /** Returns these settings with replicas that take steps alone. */
    public GptSettings apart(OuterSettings other) {
        return new GptSettings(
                shape,
                partition,
                batch,
                precision,
                optimizer,
                seed,
                recomputedBlocks,
                grid,
                zero,
                sequence,
                fineTuning,
                dropout,
                gradientSum,
                Optional.of(other),
                wired,
                offloadFolder);
    }

    /** Returns these settings with activations that leave the device for a folder. */
    public GptSettings offloadingTo(Path folder) {
        return new GptSettings(
                shape,
                partition,
                batch,
                precision,
                optimizer,
                seed,
                recomputedBlocks,
                grid,
                zero,
                sequence,
                fineTuning,
                dropout,
                gradientSum,
                outer,
                wired,
                Optional.of(folder));
    }

    /** Returns these settings for replicas that share this batch. */
    public GptSettings sharingBatch() {
        return new GptSettings(
                shape,
                partition,
                batch,
                precision,
                optimizer,
                seed,
                recomputedBlocks,
                grid,
                zero,
                sequence,
                fineTuning,
                dropout,
                gradientSum,
                outer,
                true,
                offloadFolder);
    }

    /**
     * Returns whether a stage can run both ops of a pair at a time, so that one computes while the
     * other waits for a sum of tensor shards. What ops share beside parameters and kept activations
     * stands against it: the gathers of ZeRO, blocks that run again in one room, dropout's place in
     * the data, rings of context parts, averages of replicas that take steps alone.
     *
     * @param place of the rank that holds the stage
     */
    public boolean runsPairsAtOnce(RankPlace place) {
        return grid.shardsOf(place.pipeline()) > 1
                && grid.context() == 1
                && zero.equals(ZeroSettings.OFF)
                && recomputedBlocks.isEmpty()
                && fineTuning.equals(FineTuning.FULL)
                && dropout == 0
                && outer.isEmpty()
                && !wired;
    }

    /** Returns how many batches like this one make a step: one for each replica, or one for all. */
    public int batchesOfStep() {
        return wired ? 1 : grid.data();
    }

    /** Returns the micro-batches of a step, of all replicas together. */
    public int microBatchesOfStep() {
        return batch.microBatches() * batchesOfStep();
    }

    /** Returns the number in the step of what is micro-batch 0 for a rank. */
    public int firstMicroBatch(RankPlace place) {
        return wired ? 0 : place.data() * batch.microBatches();
    }

    /** Returns how many gradients are added up at most to one of a step. */
    public long gradientAddends() {
        return (long) microBatchesOfStep() * grid.context() * grid.tensor();
    }

    /** Returns which parts of the model are trained. */
    public TrainedParts trained() {
        return new TrainedParts(shape, fineTuning);
    }

    private static void requireDivided(String what, int count, String unit, int shards) {
        if (count % shards != 0) {
            throw new IllegalArgumentException(
                    "%s are divided among the tensor shards: expected a divisor of %d %s, got %d shards; try %d"
                            .formatted(
                                    what,
                                    count,
                                    unit,
                                    shards,
                                    ModelShape.largestDivisor(count, shards)));
        }
    }

    /** Returns what a shard of a stage holds of the model. */
    public ShardShape shape(StageRole role) {
        return new ShardShape(
                shape, role.shard(), role.shards(), sequence, precision.kept(), grid.mesh());
    }

    /**
     * Returns the type in which queries, keys and values are kept: attention alone reads them, and
     * what passes round among context parts is F32.
     */
    public DType keptQueryKeyValues() {
        return grid.context() > 1 ? DType.F32 : precision.kept();
    }

    /** Returns what a rank holds of the model as a stage. */
    public StageRole role(int stage, RankPlace place) {
        return partition.role(stage).onShard(place.tensor(), grid.shardsOf(place.pipeline()));
    }

    /** Returns a warning if the tensor shards do not divide the vocabulary evenly. */
    public Optional<String> vocabularyNote() {
        int least = shape.vocabulary() / grid.tensor();
        return grid.mesh().isThere() || shape.vocabulary() % grid.tensor() == 0
                ? Optional.empty()
                : Optional.of(
                        "%d tensor shards do not divide the vocabulary of %d evenly: they hold %d or %d tokens each; nothing is padded"
                                .formatted(grid.tensor(), shape.vocabulary(), least, least + 1));
    }

    /**
     * Returns the elements of a tied matrix's gradient, of which the first and the last stage have
     * one each.
     */
    public long sharedGradientElements(RankPlace place) {
        int shards = grid.shardsOf(place.pipeline());
        var own =
                new ShardShape(
                        shape, place.tensor(), shards, sequence, precision.kept(), grid.mesh());
        boolean shared = shape.tied() && fineTuning.trains(TOKEN_TABLE);
        long matrix = shared ? own.tokenRows().elements() : 0;
        return Sharding.of(this, place).keeping(OptimizerState.FLOAT32).held(matrix).count();
    }

    /**
     * Returns what a rank holds of the batch of its replica: some tokens of every slice, and of a
     * mesh some sequences of every micro-batch.
     */
    public BatchShape batchOfPart() {
        return new BatchShape(
                batch.sequences() / grid.mesh().sequenceParts(),
                batch.microBatches(),
                batch.sliceLengths().stream().map(length -> length / grid.context()).toList(),
                batch.reductionBlock(),
                batch.logits());
    }

    /** Returns which tokens of every sequence a rank holds. */
    public PartTokens tokens(RankPlace place) {
        return PartTokens.of(batch, grid.context(), place.context());
    }

    /** Returns which tokens of every sequence each context part holds. */
    public List<PartTokens> tokensOfParts() {
        return IntStream.range(0, grid.context())
                .mapToObj(part -> PartTokens.of(batch, grid.context(), part))
                .toList();
    }

    /**
     * Returns the rows of the states that a retention keeps of a micro-batch on a rank; context
     * parts hold as many as the one that needs most.
     */
    public int stateRows() {
        BatchShape part = batchOfPart();
        return grid.context() == 1
                ? part.stateRows()
                : tokensOfParts().stream()
                        .mapToInt(t -> t.stateRows(part.context(), part.sequences(), batch.grid()))
                        .max()
                        .orElseThrow();
    }

    /** Settings of a run with pipeline parallelism alone that keeps every block's activations. */
    public static GptSettings of(
            ModelShape shape,
            StagePartition partition,
            BatchShape batch,
            Precision precision,
            AdamWSettings optimizer,
            long seed) {
        return new GptSettings(
                shape,
                partition,
                batch,
                precision,
                optimizer,
                seed,
                Set.of(),
                RankGrid.pipeline(1),
                ZeroSettings.OFF,
                false);
    }

    /** Returns these settings on another grid of ranks. */
    public GptSettings onGrid(RankGrid ranks, ZeroSettings sharding) {
        return new GptSettings(
                shape,
                partition,
                batch,
                precision,
                optimizer,
                seed,
                recomputedBlocks,
                ranks,
                sharding,
                sequence,
                fineTuning,
                dropout,
                gradientSum,
                outer,
                wired,
                offloadFolder);
    }

    /** Returns the columns of what a rank sends from stage to stage. */
    public int boundaryColumns() {
        return shape.width() / grid.mesh().side();
    }

    /** Returns the rows of the largest tensor that is sent from stage to stage. */
    public int boundaryRows() {
        return batchOfPart().largestRows() / (sequence ? grid.tensor() : 1);
    }

    /** Returns the rows that a rank has of a sequence in all its boundary tensors, at most. */
    public int boundaryRowsOfSequence() {
        return batchOfPart().context() / (sequence ? grid.tensor() : 1);
    }

    /** Returns the rows of all boundary tensors of a rank in a training step. */
    public long boundaryRowsOfStep() {
        BatchShape ofPart = batchOfPart();
        return (long) ofPart.microBatches()
                * ofPart.microBatchRows()
                / (sequence ? grid.tensor() : 1);
    }

    /** Returns the tokens of one step over all replicas. */
    public int tokensPerStep() {
        return Math.multiplyExact(batch.tokensPerStep(), batchesOfStep());
    }
}
