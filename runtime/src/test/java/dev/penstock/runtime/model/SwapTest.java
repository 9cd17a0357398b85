package dev.penstock.runtime.model;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.WireCodec;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.OuterSettings;
import dev.penstock.runtime.model.shape.Precision;
import dev.penstock.runtime.model.shape.StageBudget;
import dev.penstock.runtime.model.shape.StageMemory;
import dev.penstock.runtime.model.shape.SwapCommit;
import dev.penstock.runtime.model.shape.SwapSettings;
import dev.penstock.runtime.model.shape.ZeroSettings;
import dev.penstock.runtime.model.stage.GptStage;
import dev.penstock.runtime.model.stage.GptStageFactory;
import dev.penstock.runtime.model.swap.SwapState;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.generate.base.GenerateOptions;
import dev.penstock.schedules.ir.LayerRange;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** A rank whose parameters, gradients and moments pass through its memory. */
class SwapTest {
    private static final double CLIP = 0.5;

    /** An update of its blocks takes several stretches. */
    private static final ModelShape WIDE = ModelShape.gpt2(37, 16, 96, 3, 3, false);

    @TempDir Path folder;

    @ParameterizedTest
    @CsvSource({
        "1, FLOAT32, true, false",
        "1, FLOAT32, false, true",
        "1, BF16, true, false",
        "2, FLOAT32, true, true"
    })
    void whatIsSwappedDoesNotChangeABit(
            int replicas, Precision precision, boolean tied, boolean coded) throws Exception {
        Schedule order = order(3, 4);
        GptSettings floats = settings(tied ? TinyRuns.TIED : WIDE, order, precision);
        GptSettings settings = coded ? TinyRuns.coded(floats) : floats;

        try (var resident = driver(settings, order, replicas, ZeroSettings.OFF);
                var swapped = driver(settings, order, replicas, swapped())) {
            for (int step = 1; step <= 3; step++) {
                resident.train(step, CLIP);
                swapped.train(step, CLIP);
                assertThat(bits(swapped.gradients())).isEqualTo(bits(resident.gradients()));
            }
            assertThat(swapped.losses()).isEqualTo(resident.losses());
            assertThat(bits(swapped.state())).isEqualTo(bits(resident.state()));
            assertThat(swapped.evaluate(0)).isEqualTo(resident.evaluate(0));
        }
    }

    /** In waves of fragments with a lag, whose differences are coded, and all at once. */
    @ParameterizedTest
    @CsvSource({
        "3, 0, 1, 0, 0.9, false, FLOAT32, false",
        "2, 0, 1, 4, 0.9, false, FLOAT32, false",
        "6, 2, 2, 0, 0.9, true, FLOAT32, false",
        "4, 1, 2, 0, 0.9, false, BF16, false",
        "2, 0, 1, 0, 0, false, FLOAT32, true"
    })
    void outerStateThatIsSwappedDoesNotChangeABit(
            int every,
            int lag,
            int fragments,
            int after,
            double momentum,
            boolean travelsCoded,
            Precision precision,
            boolean coded)
            throws Exception {
        Schedule order = order(3, 2);
        GptSettings floats =
                settings(coded ? WIDE : TinyRuns.TIED, order, precision)
                        .apart(outer(every, lag, fragments, after, momentum, travelsCoded));
        GptSettings settings = coded ? TinyRuns.coded(floats) : floats;

        try (var resident = driver(settings, order, 2, ZeroSettings.OFF);
                var swapped = driver(settings, order, 2, swapped())) {
            for (int step = 1; step <= after + 2 * every + lag + 1; step++) {
                resident.train(step, CLIP);
                swapped.train(step, CLIP);
                if (step % 3 == 0) {
                    assertThat(swapped.evaluate(0)).isEqualTo(resident.evaluate(0));
                    assertThat(bits(swapped.state())).isEqualTo(bits(resident.state()));
                }
            }
            assertThat(swapped.losses()).isEqualTo(resident.losses());
            assertThat(bits(swapped.state())).isEqualTo(bits(resident.state()));
        }
    }

    private static OuterSettings outer(
            int every, int lag, int fragments, int after, double momentum, boolean coded) {
        return new OuterSettings(
                every,
                lag,
                fragments,
                true,
                0.7,
                momentum,
                0.5,
                coded ? Optional.of(WireCodec.INT8) : Optional.empty(),
                after);
    }

    /**
     * The turn is at the end of step 3 or while steps 7 and 8 are taken, or step 2 is the last that
     * sums: a replica may have noted its difference, or where it is, another one may have half of
     * its update.
     */
    @ParameterizedTest
    @CsvSource({
        "3, 0, 1, 0, 3, 0, 1",
        "3, 0, 1, 0, 3, 3, 3",
        "3, 0, 1, 0, 4, 3, 0",
        "3, 0, 1, 2, 1, 3, 3",
        "3, 0, 1, 2, 2, 1, 3",
        "3, 0, 1, 2, 3, 3, 0",
        "6, 2, 2, 0, 6, 1, 3",
        "6, 2, 2, 0, 8, 0, 3",
        "6, 2, 2, 0, 9, 3, 3"
    })
    void aKillOfReplicasThatTakeStepsAloneLosesNothing(
            int every, int lag, int fragments, int after, int killed, int first, int second)
            throws Exception {
        Schedule order = order(3, 2);
        GptSettings settings =
                settings(TinyRuns.TIED, order, Precision.FLOAT32)
                        .apart(outer(every, lag, fragments, after, 0.9, true));
        GptSettings files = TinyRuns.replicated(settings, 2, swapped());
        var state = new SwapState(folder, 2, 3);
        state.own("run");
        try (var run = new ReplicatedDriver(files, order, TinyRuns.tokens(37))) {
            for (int step = 1; step < killed; step++) {
                run.train(step, CLIP);
            }
            run.train(killed, CLIP, List.of(first, second));
        }

        Optional<SwapCommit> kept = state.committed("run", note -> assertThat(note).isNull());

        assertThat(kept.orElseThrow().step()).isEqualTo(killed);
        try (var resident = driver(settings, order, 2, ZeroSettings.OFF);
                var again =
                        new ReplicatedDriver(files, order, TinyRuns.tokens(37), kept(kept.get()))) {
            for (int step = 1; step <= after + 2 * every + lag + 1; step++) {
                resident.train(step, CLIP);
                if (step > killed) {
                    again.train(step, CLIP);
                }
            }
            assertThat(bits(again.state())).isEqualTo(bits(resident.state()));
        }
    }

    /** The stages that the kill leaves behind follow from their gradients. */
    @ParameterizedTest
    @CsvSource({"0", "1", "2", "3"})
    void aKillBetweenTheUpdatesOfStagesLosesNothing(int updated) throws Exception {
        Schedule order = order(3, 4);
        GptSettings settings =
                settings(TinyRuns.TIED, order, Precision.FLOAT32)
                        .onGrid(RankGrid.pipeline(1), swapped());
        var state = new SwapState(folder, 1, 3);
        state.own("run");
        Map<String, List<Integer>> calm;
        try (var run = pipeline(settings, order, ParameterSource.none())) {
            run.train(1);
            run.compute(2);
            for (int stage = 0; stage < updated; stage++) {
                run.stages().get(stage).update(2, CLIP);
            }
        }

        var kept = state.committed("run", note -> assertThat(note).isNull());

        assertThat(kept).contains(new SwapCommit(updated == 0 ? 1 : 2, updated == 0 ? 1 : CLIP));
        assertThat(state.committed("another", _ -> {})).isEmpty();
        try (var again = pipeline(settings, order, kept(kept.orElseThrow()))) {
            if (updated == 0) {
                again.compute(2);
                again.update(2, CLIP);
            }
            again.train(3);
            calm = bits(again.state());
        }
        try (var resident =
                pipeline(
                        settings.onGrid(RankGrid.pipeline(1), ZeroSettings.OFF),
                        order,
                        ParameterSource.none())) {
            resident.train(1);
            resident.compute(2);
            resident.update(2, CLIP);
            resident.train(3);
            assertThat(bits(resident.state())).isEqualTo(calm);
        }
    }

    /** Steps 2 and 3 overflow, so that what step 4 updates is after step 1. */
    @ParameterizedTest
    @CsvSource({"1", "3"})
    void aKillInTheUpdateAfterStepsThatOverflowedLosesNothing(int updated) throws Exception {
        Schedule order = order(3, 4);
        GptSettings settings =
                settings(TinyRuns.TIED, order, Precision.FLOAT32)
                        .onGrid(RankGrid.pipeline(1), swapped());
        var state = new SwapState(folder, 1, 3);
        state.own("run");
        try (var run = pipeline(settings, order, ParameterSource.none())) {
            run.train(1);
            run.compute(2);
            run.compute(3);
            run.compute(4);
            for (GptStage stage : run.stages().subList(0, updated)) {
                stage.skipped(2);
                stage.update(4, CLIP);
            }
        }

        SwapCommit kept = state.committed("run", _ -> {}).orElseThrow();

        assertThat(kept).isEqualTo(new SwapCommit(4, CLIP, 1, 2, List.of(2L, 3L)));
        Map<String, List<Integer>> calm;
        try (var again = pipeline(settings, order, kept(kept))) {
            calm = trainAfterOverflows(again);
        }
        try (var resident =
                pipeline(
                        settings.onGrid(RankGrid.pipeline(1), ZeroSettings.OFF),
                        order,
                        ParameterSource.none())) {
            resident.train(1);
            resident.compute(2);
            resident.compute(3);
            resident.compute(4);
            resident.stages().forEach(stage -> stage.skipped(2));
            resident.update(4, CLIP);
            assertThat(trainAfterOverflows(resident)).isEqualTo(calm);
        }
    }

    private static Map<String, List<Integer>> trainAfterOverflows(PipelineDriver run) {
        run.stages().forEach(stage -> stage.skipped(2));
        run.train(5);
        return bits(run.state());
    }

    @Test
    void backwardsDoNotLoadTheEmbeddingWhichTheyDoNotNeed() {
        Schedule order = order(3, 1);
        GptSettings settings =
                settings(TinyRuns.TIED, order, Precision.FLOAT32)
                        .onGrid(RankGrid.pipeline(1), swapped());

        try (var run = pipeline(settings, order, ParameterSource.none())) {
            GptStage first = run.stages().getFirst();

            assertThat(first.gather(LayerRange.ALL, true).describe()).contains("wte");
            first.release(LayerRange.ALL);
            assertThat(first.gather(LayerRange.ALL, false).describe()).contains("h.0");
            first.release(LayerRange.ALL);
        }
    }

    private ZeroSettings swapped() {
        return ZeroSettings.swapped(new SwapSettings(folder, true));
    }

    private static ParameterSource kept(SwapCommit commit) {
        return new ParameterSource() {
            @Override
            public boolean fill(String name, TensorPiece piece, MemorySegment destination) {
                throw new AssertionError(name + " is there");
            }

            @Override
            public Optional<SwapCommit> swapped() {
                return Optional.of(commit);
            }
        };
    }

    private static PipelineDriver pipeline(
            GptSettings settings, Schedule order, ParameterSource source) {
        var lowered = new ReplicatedOrder(settings, order);
        return new PipelineDriver(
                Devices.open(DeviceSettings.DEFAULTS.withKind(DeviceSettings.Kind.REFERENCE)),
                settings,
                lowered.training(),
                lowered.evaluation(),
                TinyRuns.tokens(37),
                source,
                0,
                0);
    }

    /** Two neighbours and the gradients of one stage are in memory, and nothing is left out. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void theDeviceHoldsAQuarterOfTheModel(boolean apart) {
        Schedule order = order(10, 2);
        GptSettings alone =
                TinyRuns.coded(
                                settings(
                                        ModelShape.gpt2(37, 16, 32, 10, 2, true),
                                        order,
                                        Precision.FLOAT32))
                        .onGrid(RankGrid.pipeline(1), swapped());
        GptSettings settings = apart ? alone.apart(outer(2, 0, 1, 0, 0.9, true)) : alone;
        var lowered = new ReplicatedOrder(settings, order);
        List<Integer> stages = IntStream.range(0, 10).boxed().toList();
        StageMemory planned =
                new GptStageFactory(
                                settings,
                                Collections.nCopies(10, StageBudget.everything(settings.batch())),
                                TinyRuns.tokens(37),
                                ParameterSource.none())
                        .following(List.of(lowered.training(), lowered.evaluation()))
                        .predictedMemory(stages, RankPlace.single(0));

        try (var run = pipeline(settings, order, ParameterSource.none())) {
            run.train(1);

            StageMemory held =
                    run.stages().stream()
                            .map(GptStage::memory)
                            .reduce(StageMemory.NOTHING, StageMemory::plus);
            assertThat(held).isEqualTo(planned);
            assertThat(held.parameters() + held.gradients() + held.optimizer()).isZero();
            assertThat(held.gathered() + held.accumulators()).isLessThan(held.offloaded() / 4);
        }
    }

    private static ReplicatedDriver driver(
            GptSettings settings, Schedule order, int replicas, ZeroSettings zero) {
        return new ReplicatedDriver(
                TinyRuns.replicated(settings, replicas, zero), order, TinyRuns.tokens(37));
    }

    private static Schedule order(int chunks, int microBatches) {
        return Generators.generate(
                "breadth-first",
                new PipelineShape(1, chunks, microBatches, List.of(16)),
                GenerateOptions.defaults());
    }

    private static GptSettings settings(ModelShape shape, Schedule order, Precision precision) {
        return TinyRuns.settings(
                shape,
                order.shape().stages(),
                new BatchShape(2, order.shape().microBatches(), List.of(16), 4),
                precision);
    }

    private static Map<String, List<Integer>> bits(Map<String, float[]> tensors) {
        Map<String, List<Integer>> bits = new TreeMap<>();
        tensors.forEach(
                (name, values) -> {
                    Integer[] each = new Integer[values.length];
                    Arrays.setAll(each, i -> Float.floatToRawIntBits(values[i]));
                    bits.put(name, List.of(each));
                });
        return bits;
    }
}
