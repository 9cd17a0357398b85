package dev.penstock.runtime.model;

import dev.penstock.actors.collective.TensorMesh;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.runtime.data.BatchSource;
import dev.penstock.runtime.model.parameters.CounterRandom;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.AdamWSettings;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.LearningRate;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.OptimizerState;
import dev.penstock.runtime.model.shape.Precision;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.runtime.model.shape.ZeroSettings;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Set;

/** Settings and data of runs small enough to repeat many times. */
public final class TinyRuns {
    public static final ModelShape TIED = ModelShape.gpt2(37, 16, 24, 3, 3, true);
    public static final ModelShape UNTIED = ModelShape.gpt2(37, 16, 24, 3, 3, false);

    /** The precisions in which CPUs compute. */
    public static final List<Precision> ON_CPUS = List.of(Precision.FLOAT32, Precision.BF16);

    private TinyRuns() {}

    public static GptSettings settings(ModelShape shape, int stages, BatchShape batch) {
        return settings(shape, stages, batch, Precision.FLOAT32);
    }

    public static GptSettings settings(
            ModelShape shape, int stages, BatchShape batch, Precision precision) {
        return GptSettings.of(
                shape,
                StagePartition.byFlops(shape, stages),
                batch,
                precision,
                new AdamWSettings(
                        LearningRate.cosine(0.01, 0.001, 2, 10), 0.9, 0.95, 1e-8, 0.1, false),
                7);
    }

    /** The same with blocks that run again in the backward. */
    public static GptSettings recomputing(GptSettings s, Set<Integer> blocks) {
        return new GptSettings(
                s.shape(),
                s.partition(),
                s.batch(),
                s.precision(),
                s.optimizer(),
                s.seed(),
                blocks,
                s.grid(),
                s.zero(),
                s.sequence(),
                s.fineTuning(),
                s.dropout(),
                s.gradientSum(),
                s.outer());
    }

    /** The same with moments in 8 bits. */
    public static GptSettings coded(GptSettings s) {
        return new GptSettings(
                s.shape(),
                s.partition(),
                s.batch(),
                s.precision(),
                s.optimizer().keeping(OptimizerState.INT8),
                s.seed(),
                s.recomputedBlocks(),
                s.grid(),
                s.zero(),
                s.sequence(),
                s.fineTuning(),
                s.dropout(),
                s.gradientSum(),
                s.outer());
    }

    /** The same with tensor shards that divide rows. */
    public static GptSettings sequenceParallel(GptSettings s) {
        return new GptSettings(
                s.shape(),
                s.partition(),
                s.batch(),
                s.precision(),
                s.optimizer(),
                s.seed(),
                s.recomputedBlocks(),
                s.grid(),
                s.zero(),
                true,
                s.fineTuning(),
                s.dropout(),
                s.gradientSum(),
                s.outer());
    }

    /** The same on so many replicas, each with this batch. */
    static GptSettings replicated(GptSettings s, int replicas, ZeroSettings zero) {
        return s.onGrid(new RankGrid(1, 1, 1, replicas), zero);
    }

    /** Two sequences in each of three micro-batches, sums on a grid of 4 tokens. */
    public static BatchShape batch(List<Integer> sliceLengths) {
        return new BatchShape(2, 3, sliceLengths, 4);
    }

    /** Tokens that follow from their place; the next token is half predictable. */
    public static BatchSource tokens(int vocabulary) {
        return (kind, step, microBatch, into) -> {
            CounterRandom random = CounterRandom.of(step, kind + " " + microBatch);
            int token = 0;
            for (int i = 0; i < into.length; i++) {
                token =
                        random.uniform(i) < 0.5
                                ? (token + 1) % vocabulary
                                : (int) (random.uniform(i + 1000L) * vocabulary);
                into[i] = token;
            }
        };
    }

    /** Large random values everywhere, so that a missing or misplaced parameter shows. */
    public static ParameterSource roughWeights() {
        return (name, piece, destination) -> {
            CounterRandom random = CounterRandom.of(3, name);
            piece.walk(
                    (inWhole, inPiece, count) -> {
                        for (long i = 0; i < count; i++) {
                            float value = (float) (0.2 * random.normal(inWhole + i));
                            destination.setAtIndex(ValueLayout.JAVA_FLOAT, inPiece + i, value);
                        }
                    });
            return !name.startsWith("optimizer.");
        };
    }

    /** The same on several tensor shards. */
    public static GptSettings sharded(GptSettings s, int shards) {
        return s.onGrid(new RankGrid(s.partition().stages(), shards, 1, 1), s.zero());
    }

    /** The same on a mesh of tensor shards. */
    public static GptSettings meshed(GptSettings s, TensorMesh mesh) {
        return s.onGrid(
                new RankGrid(
                        s.partition().stages(), mesh.shards(), 1, s.grid().data(), List.of(), mesh),
                s.zero());
    }

    /** A pipeline under 1F1B (Seq1F1B where sequences are cut). */
    public static PipelineDriver pipeline(GptSettings settings) {
        BatchShape batch = settings.batch();
        return new PipelineDriver(
                settings,
                Orders.oneForwardOneBackward(
                        settings.partition().stages(), batch.microBatches(), batch.slices()),
                tokens(settings.shape().vocabulary()),
                ParameterSource.none());
    }
}
