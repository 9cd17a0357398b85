package dev.penstock.runtime.model;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.spi.MemoryUse;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.FineTuning;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.stage.GptStage;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.InsertOffloads;
import dev.penstock.schedules.lower.OffloadSettings;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Activations that leave the device and come back are the same to the bit. */
class OffloadTest {
    private static final int STEPS = 2;
    private static final int MICRO_BATCHES = 6;

    private static Schedule offloaded(Schedule order, int lookAhead) {
        Set<Integer> all =
                IntStream.range(0, order.shape().stages()).boxed().collect(Collectors.toSet());
        return InsertOffloads.into(order, new OffloadSettings(all, lookAhead));
    }

    private static GptSettings settings(int stages, List<Integer> slices) {
        return TinyRuns.settings(
                TinyRuns.TIED, stages, new BatchShape(1, MICRO_BATCHES, slices, 4));
    }

    @ParameterizedTest
    @CsvSource({
        "gpipe, 1, 1, 16, 1",
        "gpipe, 1, 1, 16, 0",
        "1f1b, 3, 1, 16, 1",
        "interleaved-1f1b, 2, 2, 16, 1",
        "breadth-first, 1, 3, 16, 1",
        "zb-h1, 3, 1, 16, 0",
        "seq1f1b, 2, 1, '4,12', 1",
        "terapipe, 2, 1, '8,8', 2"
    })
    void noOrderChangesABit(String kind, int ranks, int chunks, String lengths, int lookAhead) {
        List<Integer> slices = Arrays.stream(lengths.split(",")).map(Integer::valueOf).toList();
        Schedule order =
                Generators.generate(kind, new PipelineShape(ranks, chunks, MICRO_BATCHES, slices));
        Schedule moved = offloaded(order, lookAhead);
        GptSettings settings = settings(order.shape().stages(), slices);

        assertThat(moved).isNotEqualTo(order);
        assertThat(run(settings, moved)).isEqualTo(run(settings, order));
    }

    @Test
    void blocksThatRunAgainKeepTheirInputsOnTheHost() {
        Schedule order = Generators.generate("gpipe", PipelineShape.of(1, MICRO_BATCHES));
        GptSettings kept = settings(1, List.of(16));

        assertThat(run(TinyRuns.recomputing(kept, Set.of(0, 2)), offloaded(order, 1)))
                .isEqualTo(run(kept, order));
    }

    @Test
    void frozenBlocksOffloadWhatTheyKeep() {
        Schedule order = Generators.generate("gpipe", PipelineShape.of(1, MICRO_BATCHES));
        GptSettings settings =
                settings(1, List.of(16))
                        .training(new FineTuning(Optional.empty(), List.of("h.1.*")));

        assertThat(run(settings, offloaded(order, 1))).isEqualTo(run(settings, order));
    }

    @Test
    void theDeviceHoldsLessByWhatTheHostHolds(@TempDir Path folder) throws Exception {
        Schedule order = Generators.generate("gpipe", PipelineShape.of(1, MICRO_BATCHES));
        GptSettings settings = settings(1, List.of(16));
        try (PipelineDriver all = pipeline(settings, order);
                PipelineDriver moved = pipeline(settings, offloaded(order, 1));
                PipelineDriver inFiles =
                        pipeline(settings.offloadingTo(folder), offloaded(order, 1))) {
            GptStage whole = all.stages().getFirst();
            GptStage less = moved.stages().getFirst();
            long unit = less.hostMemory().getFirst().peakBytes();

            // of 6 units never more than 2 are here, nor more than 5 on the host or on their way
            assertThat(whole.hostMemory()).isEmpty();
            assertThat(less.hostMemory())
                    .extracting(MemoryUse::use)
                    .containsExactly(MemoryUse.HOST_ACTIVATIONS);
            assertThat(whole.memory().total() - less.memory().total()).isEqualTo(unit * 4 / 5);
            assertThat(inFiles.stages().getFirst().hostMemory()).isEqualTo(less.hostMemory());
            assertThat(inFiles.train(1)).isEqualTo(all.train(1));
        }
        try (var left = Files.list(folder)) {
            assertThat(left).isEmpty();
        }
    }

    @Test
    void anAbandonedStepLeavesNoTrace() {
        Schedule order =
                offloaded(Generators.generate("gpipe", PipelineShape.of(1, MICRO_BATCHES)), 1);
        GptSettings settings = settings(1, List.of(16));
        try (PipelineDriver plain = pipeline(settings, order);
                PipelineDriver interrupted = pipeline(settings, order)) {
            for (int ops : List.of(2, 7, 14)) {
                interrupted.abandon(1, ops);
            }

            assertThat(interrupted.train(1)).isEqualTo(plain.train(1));
            assertThat(interrupted.train(2)).isEqualTo(plain.train(2));
        }
    }

    private static PipelineDriver pipeline(GptSettings settings, Schedule order) {
        return new PipelineDriver(
                settings,
                order,
                TinyRuns.tokens(settings.shape().vocabulary()),
                ParameterSource.none());
    }

    private static List<List<Object>> run(GptSettings settings, Schedule order) {
        try (PipelineDriver pipeline = pipeline(settings, order)) {
            List<List<Object>> outcome = new ArrayList<>();
            for (int step = 1; step <= STEPS; step++) {
                outcome.add(List.of(pipeline.train(step), pipeline.gradientNorm()));
            }
            pipeline.state()
                    .forEach((name, values) -> outcome.add(List.of(name, Arrays.hashCode(values))));
            return outcome;
        }
    }
}
