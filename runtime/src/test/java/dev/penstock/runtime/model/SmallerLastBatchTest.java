package dev.penstock.runtime.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.actors.spi.StepKind;
import dev.penstock.runtime.data.BatchSource;
import dev.penstock.runtime.model.parameters.CounterRandom;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.ZeroSettings;
import dev.penstock.runtime.model.shape.ZeroSettings.Residency;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.generate.base.GenerateOptions;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * A step that has fewer sequences than it could: the same loss and gradients as a run on one rank
 * whose batch is just as large.
 */
class SmallerLastBatchTest {
    private static final int VOCABULARY = 37;

    @ParameterizedTest
    @CsvSource({
        "1f1b, 2, 1, 1, 16, 1",
        "1f1b, 2, 1, 1, 16, 7",
        "gpipe, 1, 1, 1, 16, 5",
        "seq1f1b, 2, 1, 1, 8 8, 3",
        "terapipe, 2, 1, 1, 6 10, 7",
        "zb-v, 2, 2, 1, 16, 5",
        "1f1b, 2, 1, 2, 16, 11",
        "breadth-first, 2, 2, 2, 16, 3",
        "zb-h1, 2, 1, 2, 16, 9"
    })
    void theMeansAreThoseOfTheTokensThatAreThere(
            String kind, int ranks, int chunks, int replicas, String slices, int sequences)
            throws Exception {
        List<Integer> lengths = Arrays.stream(slices.split(" ")).map(Integer::valueOf).toList();
        Schedule order = order(kind, ranks, chunks, 4, lengths);
        GptSettings settings =
                TinyRuns.replicated(
                        TinyRuns.settings(
                                TinyRuns.TIED,
                                order.shape().stages(),
                                new BatchShape(2, 4, lengths, 4)),
                        replicas,
                        new ZeroSettings(replicas > 1 ? 3 : 0, Residency.PASS, 1));
        Schedule plainOrder = order("gpipe", 1, 1, sequences, List.of(16));
        GptSettings plain =
                TinyRuns.settings(TinyRuns.TIED, 1, new BatchShape(1, sequences, List.of(16), 4));
        try (var one =
                        new PipelineDriver(
                                plain,
                                plainOrder,
                                bySequence(1, sequences),
                                ParameterSource.none());
                var driver = new ReplicatedDriver(settings, order, bySequence(2, sequences))) {
            double loss = one.train(1);
            double heldOut = one.evaluate(0);

            driver.train(1, 1e9);
            assertThat(driver.losses().getFirst()).isCloseTo(loss, within(1e-6));
            assertClose(driver.gradients(), one.gradients());
            assertThat(driver.evaluate(0)).isCloseTo(heldOut, within(1e-5));
        }
    }

    /** Sequence n of a step is the same whatever the micro-batches. */
    private static BatchSource bySequence(int perMicroBatch, int sequences) {
        return new BatchSource() {
            @Override
            public void read(StepKind kind, long step, int microBatch, int[] tokens) {
                for (int i = 0; i < tokens.length; i++) {
                    int sequence = microBatch * perMicroBatch + i / 17;
                    CounterRandom random = CounterRandom.of(step, kind + " " + sequence);
                    tokens[i] = (int) (random.uniform(i % 17) * VOCABULARY);
                }
            }

            @Override
            public int sequences(StepKind kind, long step, int full) {
                return sequences;
            }
        };
    }

    private static Schedule order(
            String kind, int ranks, int chunks, int microBatches, List<Integer> lengths) {
        return Generators.generate(
                kind,
                new PipelineShape(ranks, chunks, microBatches, lengths),
                GenerateOptions.defaults());
    }

    private static void assertClose(Map<String, float[]> actual, Map<String, float[]> expected) {
        assertThat(actual.keySet()).isEqualTo(expected.keySet());
        expected.forEach(
                (name, values) -> {
                    float[] got = Objects.requireNonNull(actual.get(name));
                    double difference = 0;
                    double norm = 0;
                    for (int i = 0; i < values.length; i++) {
                        double d = values[i] - got[i];
                        difference += d * d;
                        norm += (double) values[i] * values[i];
                    }
                    assertThat(Math.sqrt(difference / norm)).as(name).isLessThan(1e-5);
                });
    }
}
