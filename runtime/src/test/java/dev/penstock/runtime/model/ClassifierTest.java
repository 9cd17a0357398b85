package dev.penstock.runtime.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.checkpoint.HuggingFaceWeights;
import dev.penstock.runtime.data.BatchSource;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.family.StoredPart;
import dev.penstock.runtime.model.shape.AdamWSettings;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.LearningRate;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.Precision;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.runtime.model.shape.ZeroSettings;
import dev.penstock.runtime.safetensors.SafetensorsFile;
import dev.penstock.runtime.safetensors.StoredTensor;
import dev.penstock.schedules.ir.Schedule;
import java.net.URISyntaxException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Losses and gradients of two tiny classifiers as transformers computes them in float64, of rows
 * that are padded and have one text or two. {@code classifier/record.py} made the files.
 */
class ClassifierTest {
    private static final int CONTEXT = 12;
    private static final AdamWSettings OPTIMIZER =
            new AdamWSettings(LearningRate.constant(0.01), 0.9, 0.95, 1e-8, 0.1, true);

    private final List<AutoCloseable> opened = new ArrayList<>();

    @AfterEach
    void close() throws Exception {
        for (AutoCloseable each : opened) {
            each.close();
        }
    }

    @ParameterizedTest(name = "{0} on {1}, {2} stages")
    @CsvSource({
        "bert, REFERENCE, 1",
        "bert, CPU, 1",
        "bert, CPU, 2",
        "bert, REFERENCE, 4",
        "megatron-bert, REFERENCE, 1",
        "megatron-bert, CPU, 1",
        "megatron-bert, CPU, 2",
        "megatron-bert, REFERENCE, 4"
    })
    void lossesAccuracyAndGradientsAreThoseOfTransformers(
            String family, DeviceSettings.Kind kind, int stages) {
        Recorded recorded = recorded(family);
        var batch = new BatchShape(2, 2, List.of(CONTEXT), 4);
        Schedule order = Orders.oneForwardOneBackward(stages, 2, 1);
        var device = Devices.open(DeviceSettings.DEFAULTS.withKind(kind).withThreads(2));
        try (var pipeline =
                new PipelineDriver(
                        device,
                        settings(recorded, stages, batch),
                        order,
                        recorded.batches(2),
                        recorded.weights::fill)) {
            assertThat(pipeline.evaluate(0)).isCloseTo(recorded.loss(), within(1e-5));
            assertThat(pipeline.accuracy()).isEqualTo(recorded.accuracy());
            assertThat(pipeline.train(1)).isCloseTo(recorded.loss(), within(1e-5));
            assertThat(pipeline.accuracy()).isEqualTo(recorded.accuracy());
            recorded.assertGradients(pipeline.gradients());
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"bert", "megatron-bert"})
    void recomputedAndSplitBackwardsAreTheSame(String family) {
        Recorded recorded = recorded(family);
        var batch = new BatchShape(2, 2, List.of(CONTEXT), 4);
        GptSettings plain = settings(recorded, 2, batch);
        Schedule order = Orders.split(Orders.oneForwardOneBackward(2, 2, 1), 1);
        try (var pipeline =
                new PipelineDriver(
                        TinyRuns.recomputing(plain, Set.of(0, 1)),
                        order,
                        recorded.batches(2),
                        recorded.weights::fill)) {
            assertThat(pipeline.train(1)).isCloseTo(recorded.loss(), within(1e-5));
            recorded.assertGradients(pipeline.gradients());
        }
    }

    @ParameterizedTest
    @CsvSource({
        "bert, 1, 2, 1, 0, false",
        "bert, 2, 2, 1, 0, true",
        "bert, 1, 1, 2, 3, false",
        "megatron-bert, 2, 2, 2, 3, true"
    })
    void shardsReplicasAndDividedStatesAreTheSame(
            String family, int stages, int shards, int replicas, int zero, boolean sequence)
            throws Exception {
        Recorded recorded = recorded(family);
        int microBatches = 2 / replicas;
        var batch = new BatchShape(2, microBatches, List.of(CONTEXT), 4);
        var grid = new RankGrid(stages, shards, 1, replicas);
        var states =
                zero == 0
                        ? ZeroSettings.OFF
                        : new ZeroSettings(zero, ZeroSettings.Residency.LAYER, 1);
        GptSettings plain = settings(recorded, stages, batch).onGrid(grid, states);
        GptSettings settings = sequence ? TinyRuns.sequenceParallel(plain) : plain;
        Schedule order = Orders.oneForwardOneBackward(stages, microBatches, 1);
        try (var ranks =
                new GridDriver(settings, order, recorded.batches(2), recorded.weights::fill)) {
            assertThat(ranks.train(1)).isCloseTo(recorded.loss(), within(1e-5));
            recorded.assertGradients(ranks.gradients());
        }
    }

    private static GptSettings settings(Recorded recorded, int stages, BatchShape batch) {
        ModelShape shape = recorded.config.shape();
        return GptSettings.of(
                shape,
                StagePartition.byFlops(shape, stages),
                batch,
                Precision.FLOAT32,
                OPTIMIZER,
                42);
    }

    private Recorded recorded(String family) {
        Path folder = folder(family);
        HuggingFaceWeights weights = HuggingFaceWeights.open(folder);
        opened.add(weights);
        SafetensorsFile expected = SafetensorsFile.open(folder.resolve("expected.safetensors"));
        opened.add(expected);
        ModelConfig config = ModelConfig.read(folder.resolve("config.json"));
        weights.requireParameters(config);
        return new Recorded(config, weights, expected);
    }

    static Path folder(String family) {
        try {
            return Path.of(
                    Objects.requireNonNull(
                                    ClassifierTest.class.getResource("/classifier/" + family))
                            .toURI());
        } catch (URISyntaxException e) {
            throw new IllegalStateException(e);
        }
    }

    /** What was recorded of a model. */
    private record Recorded(
            ModelConfig config, HuggingFaceWeights weights, SafetensorsFile expected) {
        double loss() {
            return expected.tensor("loss").real(0);
        }

        double accuracy() {
            StoredTensor logits = expected.tensor("logits");
            int classes = logits.shape().getLast();
            int right = 0;
            for (int row = 0; row < logits.shape().getFirst(); row++) {
                int best = 0;
                for (int label = 1; label < classes; label++) {
                    double other = logits.real((long) row * classes + label);
                    best = other > logits.real((long) row * classes + best) ? label : best;
                }
                right += best == expected.tensor("labels").integer(row) ? 1 : 0;
            }
            return (double) right / logits.shape().getFirst();
        }

        BatchSource batches(int sequences) {
            StoredTensor tokens = expected.tensor("tokens");
            StoredTensor types = expected.tensor("types");
            StoredTensor lengths = expected.tensor("lengths");
            StoredTensor labels = expected.tensor("labels");
            return new BatchSource() {
                private interface Each {
                    void at(int index, int row, int token);
                }

                private void each(int microBatch, Each work) {
                    for (int i = 0; i < sequences * (CONTEXT + 1); i++) {
                        int row = microBatch * sequences + i / (CONTEXT + 1);
                        work.at(i, row, i % (CONTEXT + 1));
                    }
                }

                @Override
                public boolean packed() {
                    return true;
                }

                @Override
                public boolean masked() {
                    return true;
                }

                @Override
                public boolean inPlace() {
                    return true;
                }

                @Override
                public boolean counts(int marks) {
                    return (marks & UNCOUNTED) == 0;
                }

                @Override
                public void read(StepKind kind, long step, int microBatch, int[] into) {
                    each(microBatch, (i, row, _) -> into[i] = (int) labels.integer(row));
                }

                @Override
                public void inputs(StepKind kind, long step, int microBatch, int[] into) {
                    each(
                            microBatch,
                            (i, row, t) ->
                                    into[i] =
                                            t < CONTEXT
                                                    ? (int) tokens.integer(row * CONTEXT + t)
                                                    : 0);
                }

                @Override
                public void marks(StepKind kind, long step, int microBatch, byte[] marks) {
                    each(
                            microBatch,
                            (i, row, t) -> {
                                boolean begins = t == 0 || t == lengths.integer(row);
                                boolean second =
                                        t < CONTEXT && types.integer(row * CONTEXT + t) == 1;
                                marks[i] =
                                        (byte)
                                                ((begins ? BEGINS : 0)
                                                        + (second ? SECOND : 0)
                                                        + (t == 0 ? 0 : UNCOUNTED));
                            });
                }
            };
        }

        void assertGradients(Map<String, float[]> gradients) {
            double all = 0;
            for (StoredTensor tensor : expected.tensors()) {
                for (long i = 0; tensor.name().startsWith("grad.") && i < tensor.elements(); i++) {
                    all += tensor.real(i) * tensor.real(i);
                }
            }
            for (StoredPart part : config.family().parts(config.shape())) {
                StoredTensor wanted = expected.tensor("grad." + part.name());
                float[] found = Objects.requireNonNull(gradients.get(part.parameter()));
                int wide =
                        Objects.requireNonNull(config.parameters().get(part.parameter())).getLast();
                double apart = 0;
                double size = 0;
                for (int row = 0; row < part.rows(); row++) {
                    for (int column = 0; column < part.columns(); column++) {
                        int there =
                                part.transposed()
                                        ? column * part.rows() + row
                                        : row * part.columns() + column;
                        double own = found[row * wide + part.firstColumn() + column];
                        apart += Math.pow(own - wanted.real(there), 2);
                        size += Math.pow(wanted.real(there), 2);
                    }
                }
                assertThat(Math.sqrt(apart))
                        .as("distance of the gradient of %s", part.name())
                        .isLessThan(1e-5 * Math.sqrt(size) + 1e-7 * Math.sqrt(all));
            }
        }
    }
}
