package dev.penstock.runtime.model.shape;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.data.BatchSource;
import dev.penstock.runtime.model.Orders;
import dev.penstock.runtime.model.PipelineDriver;
import dev.penstock.runtime.model.TinyFamilies;
import dev.penstock.runtime.model.TinyRuns;
import dev.penstock.runtime.model.activations.SlotPool;
import dev.penstock.runtime.model.family.AdapterParts;
import dev.penstock.runtime.model.family.Families;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.stage.GptStage;
import dev.penstock.runtime.model.stage.GptStageFactory;
import dev.penstock.runtime.model.stage.KernelRehearsal;
import dev.penstock.runtime.model.stage.StageBytes;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.ForwardOnly;
import dev.penstock.schedules.lower.InsertRecompute;
import dev.penstock.schedules.validate.MemoryModel;
import dev.penstock.schedules.validate.RankBytes;
import java.util.ArrayDeque;
import java.util.Collections;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

class StageMemoryTest {
    private static final DeviceSettings REFERENCE =
            DeviceSettings.DEFAULTS.withKind(DeviceSettings.Kind.REFERENCE);

    @ParameterizedTest
    @CsvSource({
        "1, FLOAT32, 16",
        "2, FLOAT32, 8 8",
        "3, BF16, 16",
        "5, BF16, 4 4 8",
        "3, FP16, 16",
        "2, FLOAT32, 10 6"
    })
    void predictedBytesAreThoseAllocated(int stages, Precision precision, String lengths) {
        List<Integer> slices = List.of(lengths.split(" ")).stream().map(Integer::valueOf).toList();
        for (ModelShape shape : List.of(TinyRuns.TIED, TinyRuns.UNTIED)) {
            GptStageFactory factory =
                    factory(TinyRuns.settings(shape, stages, TinyRuns.batch(slices), precision));
            for (int stage = 0; stage < stages; stage++) {
                try (Device device = Devices.open(REFERENCE);
                        GptStage built = factory.create(stage, RankPlace.single(stage), device)) {

                    StageMemory predicted = factory.predictedMemory(stage, RankPlace.single(stage));

                    assertThat(built.memory()).isEqualTo(predicted);
                    assertThat(device.memory().liveBytes()).isEqualTo(predicted.total());
                }
            }
        }
    }

    /** Grouped keys, gates, no biases, norms of heads, turns and windows take what they take. */
    @ParameterizedTest
    @MethodSource("families")
    void everyFamilysBytesAreThoseAllocated(String family) {
        ModelShape shape = TinyFamilies.shape(family);
        for (List<Integer> slices : List.of(List.of(64), List.of(40, 24))) {
            for (Precision precision : Precision.values()) {
                for (Set<Integer> again : List.of(Set.<Integer>of(), Set.of(0, 1))) {
                    for (RankGrid grid : GRIDS) {
                        var batch = new BatchShape(2, 2, slices, 8);
                        GptSettings plain =
                                TinyRuns.settings(shape, grid.pipeline(), batch, precision)
                                        .onGrid(grid, zero(grid));
                        expectAllocated(TinyRuns.recomputing(plain, again), grid);
                    }
                }
            }
        }
    }

    /** Keys of rows, and a gradient of a branch. */
    @ParameterizedTest
    @ValueSource(strings = {"llama", "gpt2-variants"})
    void dropoutTakesWhatIsPredicted(String family) {
        for (RankGrid grid : GRIDS) {
            var batch = new BatchShape(2, 2, List.of(40, 24), 8);
            GptSettings plain =
                    TinyRuns.settings(TinyFamilies.shape(family), grid.pipeline(), batch)
                            .onGrid(grid, zero(grid));
            for (boolean sequence : List.of(false, true)) {
                GptSettings settings = sequence ? TinyRuns.sequenceParallel(plain) : plain;
                expectAllocated(settings.dropping(0.1), grid);
            }
        }
    }

    @Test
    void dropoutKeepsNoMasks() {
        var batch = new BatchShape(2, 2, List.of(16), 4);
        GptSettings plain = TinyRuns.settings(TinyRuns.TIED, 1, batch);

        StageMemory without = factory(plain).predictedMemory(0, RankPlace.single(0));
        StageMemory with = factory(plain.dropping(0.1)).predictedMemory(0, RankPlace.single(0));

        long keys = 2L * 2 * 16 * 8;
        long gradient = 2L * 16 * 24 * Float.BYTES;
        assertThat(with.total() - without.total()).isEqualTo(keys + gradient);
    }

    static Stream<String> families() {
        return TinyFamilies.NAMES.stream();
    }

    private static final List<RankGrid> GRIDS =
            List.of(
                    new RankGrid(1, 1, 1, 1),
                    new RankGrid(3, 1, 1, 1),
                    new RankGrid(2, 2, 1, 1),
                    new RankGrid(1, 1, 2, 1),
                    new RankGrid(2, 1, 1, 2));

    private static ZeroSettings zero(RankGrid grid) {
        return grid.data() > 1
                ? new ZeroSettings(3, ZeroSettings.Residency.LAYER, 1)
                : ZeroSettings.OFF;
    }

    private static void expectAllocated(GptSettings settings, RankGrid grid) {
        GptStageFactory factory = factory(settings);
        for (int stage = 0; stage < grid.pipeline(); stage++) {
            var place =
                    new RankPlace(stage, grid.tensor() - 1, grid.context() - 1, grid.data() - 1);
            try (Device device = Devices.open(REFERENCE);
                    GptStage built = factory.create(stage, place, device)) {

                StageMemory predicted = factory.predictedMemory(stage, place);

                assertThat(built.memory()).as("%s at %s", settings, place).isEqualTo(predicted);
                assertThat(device.memory().liveBytes()).isEqualTo(predicted.total());
            }
        }
    }

    /** Scratch exists once, and rooms of units as often as the order of the rank needs them. */
    @ParameterizedTest
    @ValueSource(strings = {"interleaved-1f1b", "zb-v", "gis", "breadth-first"})
    void severalStagesOfARankAreBuiltAsPredicted(String kind) {
        Schedule order = Generators.generate(kind, new PipelineShape(2, 2, 4, List.of(16)));
        GptSettings settings =
                TinyRuns.settings(TinyRuns.TIED, 4, new BatchShape(2, 4, List.of(16), 4));
        GptStageFactory factory =
                factory(settings).following(List.of(order, ForwardOnly.of(order)));
        for (int rank = 0; rank < 2; rank++) {
            RankPlace place = RankPlace.single(rank);
            List<Integer> stages = order.placement().stagesOf(rank);
            StageMemory apart =
                    stages.stream()
                            .map(stage -> factory.predictedMemory(stage, place))
                            .reduce(StageMemory.NOTHING, StageMemory::plus);

            StageMemory predicted = factory.predictedMemory(stages, place);

            try (Device device = Devices.open(DeviceSettings.DEFAULTS)) {
                List<GptStage> built = factory.createAll(stages, place, device);
                assertThat(
                                built.stream()
                                        .map(GptStage::memory)
                                        .reduce(StageMemory.NOTHING, StageMemory::plus))
                        .isEqualTo(predicted);
                assertThat(device.memory().liveBytes()).isEqualTo(predicted.total());
                built.forEach(GptStage::close);
                assertThat(device.memory().liveBytes()).isZero();
            }
            assertThat(predicted.parameters()).isEqualTo(apart.parameters());
            assertThat(predicted.scratch()).isLessThan(apart.scratch());
            assertThat(predicted.activations()).isLessThanOrEqualTo(apart.activations());
        }
    }

    @Test
    void trainingAllocatesNothingMore() {
        GptSettings settings = TinyRuns.settings(TinyRuns.TIED, 1, TinyRuns.batch(List.of(8, 8)));
        try (PipelineDriver pipeline = TinyRuns.pipeline(settings)) {
            StageMemory before = pipeline.stages().getFirst().memory();

            pipeline.train(1);
            pipeline.evaluate(0);

            assertThat(pipeline.stages().getFirst().memory()).isEqualTo(before);
        }
    }

    @Test
    void aStageOfGpt2CostsWhatTheFormulasSay() {
        ModelShape gpt2 = ModelShape.gpt2(50257, 1024, 768, 12, 12, true);
        GptSettings settings = TinyRuns.settings(gpt2, 2, BatchShape.unsliced(1, 16, 1024, 128));
        GptStageFactory factory =
                new GptStageFactory(
                        settings,
                        List.of(
                                new StageBudget(2, List.of(2), 2, 1),
                                new StageBudget(1, List.of(1), 1, 1)),
                        TinyRuns.tokens(50257),
                        ParameterSource.none());

        StageMemory first = factory.predictedMemory(0, RankPlace.single(0));

        long parameters = gpt2.embeddingParameters() + 8 * gpt2.layerParameters(0);
        assertThat(first.parameters()).isEqualTo(4 * parameters);
        assertThat(first.gradients()).isEqualTo(4 * parameters);
        assertThat(first.optimizer()).isEqualTo(8 * parameters);
        long row = 8 * (4 + 8 + 1) * 768 + 8 * (4 + 12); // norms, MLP, stream; moments
        long tokens = 16L * 1024;
        assertThat(first.activations()).isEqualTo(4 * (2 * 1024 * row + tokens));
        assertThat(first.keyValues()).isEqualTo(4L * 2 * 1024 * 8 * 3 * 768);
        assertThat(first.scratch()).isEqualTo(4 * 1024 * 768 * (3 + 4 + 1));
    }

    @Test
    void recomputingKeepsTheActivationsOfOneUnit() {
        Schedule gpipe = Orders.gpipe(2, 3, 1);
        GptSettings settings = TinyRuns.settings(TinyRuns.TIED, 2, TinyRuns.batch(List.of(16)));
        try (PipelineDriver kept = pipeline(settings, gpipe);
                PipelineDriver again = pipeline(settings, InsertRecompute.into(gpipe));
                PipelineDriver one = pipeline(settings, Orders.oneForwardOneBackward(2, 3, 1))) {

            long units = activations(kept, 1);

            assertThat(activations(again, 1)).isEqualTo(activations(one, 1)); // its last rank: 1
            assertThat(units - activations(again, 1)).isGreaterThan(units / 2);
        }
    }

    /** Each keeps d of its input beside (3 + 4 + 8 + 1) d and what the norms and softmax keep. */
    @Test
    void blocksThatRunAgainKeepTheirInputAlone() {
        BatchShape batch = BatchShape.unsliced(2, 3, 16, 4);
        GptSettings kept = TinyRuns.settings(TinyRuns.TIED, 1, batch);
        StageBudget budget = StageBudget.everything(batch);
        int d = 24;
        int rows = 32;

        long all = activations(kept, budget);
        long none = activations(TinyRuns.recomputing(kept, Set.of(0, 1, 2)), budget);
        long one = activations(TinyRuns.recomputing(kept, Set.of(1)), budget);

        long block = 4L * rows * ((3 + 4 + 8) * d + 4 + 3); // moments of two norms, h log sums
        assertThat(all - none).isEqualTo(3 * 3 * block);
        assertThat(all - one).isEqualTo(3 * block);
    }

    /**
     * From the input's part of a backward to the weights' they keep all that others keep from the
     * forward on: of the units in between, which the judge counts.
     */
    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3})
    void blocksThatRunAgainAreKeptBetweenThePartsOfABackward(int awaitingWeight) {
        BatchShape batch = BatchShape.unsliced(2, 3, 16, 4);
        GptSettings kept = TinyRuns.settings(TinyRuns.TIED, 1, batch);
        GptSettings again = TinyRuns.recomputing(kept, Set.of(0, 1, 2));
        StageBudget budget = new StageBudget(3, List.of(3), 3, 3, awaitingWeight);
        Schedule order = Orders.split(Orders.gpipe(1, 3, 1), awaitingWeight - 1);
        long blocks = 3 * 4L * 32 * ((3 + 4 + 8) * 24 + 4 + 3);

        long saved = activations(kept, budget) - activations(again, budget);

        assertThat(saved).isEqualTo((3 - awaitingWeight) * blocks);
        assertThat(proved(kept, budget, order) - proved(again, budget, order)).isEqualTo(saved);
    }

    /** The most bytes of units at a time, of an order on one rank with one stage. */
    private static long proved(GptSettings settings, StageBudget budget, Schedule order) {
        StageBytes bytes =
                new GptStageFactory(
                                settings,
                                List.of(budget),
                                TinyRuns.tokens(37),
                                ParameterSource.none())
                        .bytes(0, RankPlace.single(0));
        var model =
                new MemoryModel(
                        List.of(bytes.activations()),
                        List.of(List.of(0L)),
                        List.of(bytes.awaitingWeight()),
                        List.of(bytes.gatheredLayers()));
        return RankBytes.of(order, PassKind.TRAINING, model).getFirst().peakBytes();
    }

    private static PipelineDriver pipeline(GptSettings settings, Schedule order) {
        return new PipelineDriver(settings, order, TinyRuns.tokens(37), ParameterSource.none());
    }

    private static long activations(PipelineDriver pipeline, int stage) {
        return activations(pipeline.stages().get(stage).memory());
    }

    /** With queries, keys and values. */
    private static long activations(StageMemory memory) {
        return memory.activations() + memory.keyValues();
    }

    @Test
    void unequalSlicesGetTheirOwnSlotsWhereThatIsSmaller() {
        BatchShape batch = new BatchShape(16, 3, List.of(12, 4), 4);
        GptSettings settings = TinyRuns.settings(TinyRuns.TIED, 1, batch);
        StageBudget apart = new StageBudget(6, List.of(3, 3), 3, 3);
        StageBudget shared = new StageBudget(3, List.of(3, 3), 3, 3);

        long apartBytes = activations(settings, apart);
        long sharedBytes = activations(settings, shared);

        // 3 of 12 and 3 of 4 tokens against 3 of 12: the difference is 3 units of 4 tokens
        long row = 4 * (3 * ((4 + 8) * 24 + 4 + 3) + 4 * 24 + 24 + 2);
        assertThat(apartBytes - sharedBytes).isEqualTo(3 * 16 * 4 * row);
    }

    /** Also what kernels hold, which depends on threads, precision and who multiplies. */
    @ParameterizedTest
    @CsvSource({
        "FLOAT32, AUTO, 1, 16",
        "FLOAT32, JAVA, 2, 16",
        "BF16, AUTO, 1, 16",
        "BF16, AUTO, 2, 12 4",
        "BF16, JAVA, 3, 8 8",
        "FP16, AUTO, 2, 12 4"
    })
    void whatADeviceHoldsAfterTrainingIsPredictedToTheByte(
            Precision precision, DeviceSettings.Gemm gemm, int threads, String lengths) {
        List<Integer> slices = List.of(lengths.split(" ")).stream().map(Integer::valueOf).toList();
        DeviceSettings cpu =
                DeviceSettings.DEFAULTS
                        .withKind(DeviceSettings.Kind.CPU)
                        .withGemm(gemm)
                        .withThreads(threads);
        ModelShape shape = ModelShape.gpt2(301, 16, 64, 3, 4, true);
        expectPredictedAfterTraining(
                cpu, TinyRuns.settings(shape, 1, TinyRuns.batch(slices), precision));
    }

    @ParameterizedTest
    @MethodSource("families")
    void whatADeviceHoldsAfterTrainingAnyFamilyIsPredictedToTheByte(String family) {
        for (Precision precision : TinyRuns.ON_CPUS) {
            for (DeviceSettings.Gemm gemm :
                    List.of(DeviceSettings.Gemm.AUTO, DeviceSettings.Gemm.JAVA)) {
                DeviceSettings cpu =
                        DeviceSettings.DEFAULTS
                                .withKind(DeviceSettings.Kind.CPU)
                                .withGemm(gemm)
                                .withThreads(2);
                var batch = new BatchShape(2, 3, List.of(40, 24), 8);
                expectPredictedAfterTraining(
                        cpu, TinyRuns.settings(TinyFamilies.shape(family), 1, batch, precision));
            }
        }
    }

    private static void expectPredictedAfterTraining(DeviceSettings cpu, GptSettings settings) {
        int slices = settings.batch().slices();
        for (boolean split : List.of(false, true)) {
            Schedule whole = Orders.oneForwardOneBackward(1, 3, slices);
            Schedule order = split ? Orders.split(whole, 1) : whole;
            Device device = Devices.open(cpu);
            try (PipelineDriver pipeline =
                    new PipelineDriver(
                            device,
                            settings,
                            order,
                            TinyRuns.tokens(settings.shape().vocabulary()),
                            ParameterSource.none())) {
                GptStage stage = pipeline.stages().getFirst();
                var counted = Devices.counting(cpu);
                KernelRehearsal.of(
                        settings,
                        settings.role(0, RankPlace.single(0)),
                        RankPlace.single(0),
                        split,
                        counted,
                        List.of(settings.batch().context()));

                pipeline.train(1);
                pipeline.evaluate(0);

                assertThat(counted.bytes()).isPositive();
                assertThat(device.memory().peakBytes())
                        .isEqualTo(stage.memory().total() + counted.bytes());
            }
        }
    }

    /** Shorter sequences make products of few rows, which are padded. */
    @ParameterizedTest
    @CsvSource({
        "FLOAT32, AUTO, 1, false",
        "FLOAT32, AUTO, 2, true",
        "BF16, AUTO, 1, true",
        "FLOAT32, JAVA, 2, false"
    })
    void whatADeviceHoldsAfterStepsOfAllLengthsIsPredictedToTheByte(
            Precision precision, DeviceSettings.Gemm gemm, int threads, boolean adapters) {
        DeviceSettings cpu =
                DeviceSettings.DEFAULTS
                        .withKind(DeviceSettings.Kind.CPU)
                        .withGemm(gemm)
                        .withThreads(threads);
        ModelShape shape = ModelShape.gpt2(301, 64, 64, 2, 4, true);
        GptSettings plain =
                TinyRuns.settings(shape, 1, new BatchShape(1, 3, List.of(64), 64), precision);
        GptSettings settings = adapters ? withAdapters(plain) : plain;
        List<Integer> lengths = IntStream.rangeClosed(1, 16).map(i -> 4 * i).boxed().toList();
        Device device = Devices.open(cpu);
        try (PipelineDriver pipeline =
                new PipelineDriver(
                        device,
                        settings,
                        Orders.oneForwardOneBackward(1, 3, 1),
                        ofLengths(lengths, TinyRuns.tokens(shape.vocabulary())),
                        ParameterSource.none())) {
            var counted = Devices.counting(cpu);
            KernelRehearsal.of(
                    settings,
                    settings.role(0, RankPlace.single(0)),
                    RankPlace.single(0),
                    false,
                    counted,
                    lengths);

            for (int step = 1; step <= lengths.size(); step++) {
                pipeline.train(step);
                pipeline.evaluate(step);
            }

            GptStage stage = pipeline.stages().getFirst();
            assertThat(device.memory().peakBytes())
                    .isEqualTo(stage.memory().total() + counted.bytes());
        }
    }

    private static GptSettings withAdapters(GptSettings s) {
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
                s.sequence(),
                new FineTuning(
                        Optional.of(
                                new Adapters(
                                        4,
                                        8,
                                        0,
                                        AdapterParts.places(
                                                Families.GPT2,
                                                s.shape(),
                                                List.of(AdapterParts.ALL)))),
                        List.of()),
                0,
                s.gradientSum(),
                s.outer());
    }

    /** Step s has sequences of the length s. */
    private static BatchSource ofLengths(List<Integer> lengths, BatchSource tokens) {
        return new BatchSource() {
            @Override
            public void read(StepKind kind, long step, int microBatch, int[] into) {
                tokens.read(kind, step, microBatch, into);
            }

            @Override
            public boolean unequal() {
                return true;
            }

            @Override
            public int tokens(StepKind kind, long step, int microBatch, int context) {
                return lengths.get((int) step - 1);
            }
        };
    }

    @Test
    void aDeviceThatIsTooSmallSaysSoAndIsLeftEmpty() {
        GptStageFactory factory =
                factory(TinyRuns.settings(TinyRuns.TIED, 1, TinyRuns.batch(List.of(16))));
        try (Device device = Devices.open(REFERENCE.withMemoryLimitBytes(200_000))) {

            assertThatThrownBy(() -> factory.create(0, RankPlace.single(0), device))
                    .isInstanceOf(DeviceException.class)
                    .hasMessageContaining("stage 0");

            assertThat(device.memory().liveBytes()).isZero();
        }
    }

    @Test
    void anOrderBeyondTheBudgetIsRefused() {
        SlotPool<String> pool = new SlotPool<>("activations", List.of("a", "b"), 5);
        pool.take(0);
        pool.take(3);

        assertThatThrownBy(() -> pool.take(1))
                .hasMessageContaining("all 2 slots for activations are in use");
        assertThatThrownBy(() -> pool.get(2)).hasMessageContaining("key 2");
        pool.free(3);
        assertThat(pool.take(1)).isEqualTo("b");
    }

    /** Two stages may not have it at the same time, and a step that is abandoned gives it back. */
    @Test
    void aSlotThatAStageHasIsIdleForNoOther() {
        Deque<Integer> idle = new ArrayDeque<>(List.of(0, 1));
        SlotPool<String> first = new SlotPool<>("activations", List.of("a", "b"), 3, idle);
        SlotPool<String> second = new SlotPool<>("activations", List.of("A", "B"), 3, idle);

        assertThat(List.of(first.take(0), second.take(0))).containsExactly("a", "B");
        assertThatThrownBy(() -> second.take(1)).hasMessageContaining("all 2 slots");
        second.freeAll();
        assertThat(first.take(2)).isEqualTo("b");
        assertThat(first.get(0)).isEqualTo("a");
    }

    private static long activations(GptSettings settings, StageBudget budget) {
        var factory =
                new GptStageFactory(
                        settings, List.of(budget), TinyRuns.tokens(37), ParameterSource.none());
        return activations(factory.predictedMemory(0, RankPlace.single(0)));
    }

    private static GptStageFactory factory(GptSettings settings) {
        int stages = settings.partition().stages();
        StageBudget budget = StageBudget.everything(settings.batch());
        return new GptStageFactory(
                settings,
                Collections.nCopies(stages, budget),
                TinyRuns.tokens(settings.shape().vocabulary()),
                ParameterSource.none());
    }
}
