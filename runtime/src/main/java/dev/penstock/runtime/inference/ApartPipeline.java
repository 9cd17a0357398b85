package dev.penstock.runtime.inference;

import dev.penstock.actors.spi.CheckpointStore;
import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.RunSteps;
import dev.penstock.actors.spi.StageProgramFactory;
import dev.penstock.actors.spi.Timeouts;
import dev.penstock.cuda.device.DType;
import dev.penstock.runtime.model.generation.InferenceStages;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.HeadDesign;
import dev.penstock.runtime.model.shape.HeldWeights;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.runtime.model.shape.StageRole;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.Schedule;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;

/**
 * A pipeline that continues texts which join and leave, each rank in a process of its own. Ranks
 * are in V placement, so that one process has the first and the last stage, and with them the
 * texts; what a unit feeds travels with its rows. A text has the tokens that {@link
 * PipelineInference} gives it.
 *
 * <pre>
 *   rank 0  tokens -> stage 0              stage 3 -> tokens      4 stages on 2 ranks
 *   rank 1            stage 1  ->  stage 2
 * </pre>
 *
 * @param ranks each with two stages
 */
public record ApartPipeline(
        ModelShape shape, int ranks, HeldWeights held, JoiningTexts.Limits limits) {
    private static final int STAGES_OF_RANK = 2;
    private static final int SLICE_TOKENS = 128;

    /** Tensors of this size between stages, and in a block, at most. */
    private static final int BOUNDARIES = 8;

    /** Activations of a row, in multiples of the width: more than any family has. */
    private static final int ACTIVATIONS = 24;

    /** Weights of a large model are long on their way from a disk; a node that dies is not. */
    private static final Timeouts TIMEOUTS =
            new Timeouts(
                    Duration.ofSeconds(3),
                    Duration.ofSeconds(20),
                    Duration.ofSeconds(60),
                    Duration.ofMinutes(10),
                    Duration.ofSeconds(30));

    /** Nothing is trained, so there is nothing to save. */
    public static final CheckpointStore NO_CHECKPOINTS =
            new CheckpointStore() {
                @Override
                public ShardFile writeShard(
                        long step, int epoch, int stage, RankPlace place, List<NamedTensor> state) {
                    throw new UnsupportedOperationException("inference saves nothing");
                }

                @Override
                public void publish(long step, int epoch, List<ShardFile> shards) {
                    throw new UnsupportedOperationException("inference saves nothing");
                }
            };

    /** The most ranks that a model can be cut for. */
    public static int mostRanks(ModelShape shape) {
        return (shape.layers() + 2) / STAGES_OF_RANK;
    }

    /** Returns the layers of each stage. */
    public StagePartition partition() {
        return StagePartition.byFlops(shape, STAGES_OF_RANK * ranks);
    }

    /** Makes room for texts; of the processes without the first stage they say sizes alone. */
    public JoiningTexts texts() {
        return new JoiningTexts(shape, ranks, SLICE_TOKENS, limits);
    }

    /**
     * Returns what all its processes must agree on.
     *
     * @param hash over the model and all settings
     */
    public RunPlan plan(String runId, String hash) {
        JoiningTexts texts = texts();
        Schedule order =
                InferenceOrder.thereAndBack(ranks, texts.microBatches(), texts.sliceRows());
        return new RunPlan(
                runId,
                hash,
                order,
                order,
                RankGrid.pipeline(ranks),
                InferenceOrder.inFlight(order),
                new RunSteps(0, 0, 0, 1, Integer.MAX_VALUE, 0),
                TIMEOUTS,
                false,
                false,
                Long.MAX_VALUE); // one rank per stage sums nothing
    }

    /**
     * Returns what builds the stages.
     *
     * @param texts made by {@link #texts}
     */
    public StageProgramFactory stages(JoiningTexts texts, ParameterSource weights) {
        return new InferenceStages(
                shape,
                partition(),
                held.precision(),
                held,
                texts,
                new FiniteWeights(weights),
                true);
    }

    /** Returns about how many bytes each rank holds on its device. */
    public List<Long> plannedBytes() {
        JoiningTexts texts = texts();
        Placement placement = Placement.v(ranks);
        return IntStream.range(0, ranks)
                .mapToObj(
                        rank ->
                                placement.stagesOf(rank).stream()
                                        .mapToLong(stage -> bytes(partition().role(stage), texts))
                                        .sum())
                .toList();
    }

    private long bytes(StageRole role, JoiningTexts texts) {
        long weights =
                shape.layerParameters(role.firstLayer(), role.layers())
                        + (role.first() ? shape.embeddingParameters() : 0)
                        + (role.last() ? shape.headParameters() + table() : 0);
        long kept = 0;
        for (int i = 0; i < role.layers(); i++) {
            HeadDesign heads = shape.block().heads(role.firstLayer() + i);
            kept +=
                    heads.retention() == null
                            ? (long) texts.keptTokens() * heads.columns()
                            : (long) texts.texts() * heads.stateColumns();
        }
        long rows = texts.sliceRows().getFirst();
        long activations = rows * shape.width() * (ACTIVATIONS + BOUNDARIES);
        long logits = role.last() ? (long) texts.texts() * shape.vocabulary() : 0;
        long perWeight = held.narrow().orElse(DType.F32).bytes();
        return weights * perWeight + Float.BYTES * (kept + activations + logits);
    }

    /** A tied head has the table of tokens a second time. */
    private long table() {
        return shape.tied() ? (long) shape.vocabulary() * shape.width() : 0;
    }
}
