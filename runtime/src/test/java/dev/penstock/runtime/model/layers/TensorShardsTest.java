package dev.penstock.runtime.model.layers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.actors.collective.CollectiveForm;
import dev.penstock.actors.dataplane.ChannelCodecs;
import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.NonFiniteException;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.StageGroups;
import dev.penstock.actors.spi.StageMirror;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.Golden;
import dev.penstock.runtime.model.Orders;
import dev.penstock.runtime.model.PipelineDriver;
import dev.penstock.runtime.model.ShardedPipelines;
import dev.penstock.runtime.model.TinyRuns;
import dev.penstock.runtime.model.family.AdapterParts;
import dev.penstock.runtime.model.family.Families;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.AdamWSettings;
import dev.penstock.runtime.model.shape.Adapters;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.FineTuning;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.LearningRate;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.Precision;
import dev.penstock.runtime.model.shape.StageBudget;
import dev.penstock.runtime.model.shape.StageMemory;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.runtime.model.stage.ActivationTraffic;
import dev.penstock.runtime.model.stage.GptStage;
import dev.penstock.runtime.model.stage.GptStageFactory;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.lower.InsertRecompute;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Shards of a stage compute what the whole stage does, up to the order of sums. */
@Timeout(300)
class TensorShardsTest {
    private static final DeviceSettings REFERENCE =
            DeviceSettings.DEFAULTS.withKind(DeviceSettings.Kind.REFERENCE);

    /** Four heads; a vocabulary that 2 and 4 do not divide. */
    private static ModelShape shape(boolean tied) {
        return ModelShape.gpt2(37, 16, 24, 2, 4, tied);
    }

    private static GptSettings settings(boolean tied, int stages, List<Integer> slices) {
        return TinyRuns.settings(shape(tied), stages, TinyRuns.batch(slices));
    }

    private static Schedule order(GptSettings settings) {
        return Orders.oneForwardOneBackward(
                settings.partition().stages(), 3, settings.batch().slices());
    }

    private static ShardedPipelines sharded(GptSettings settings, int shards, Schedule order) {
        return new ShardedPipelines(
                REFERENCE,
                TinyRuns.sharded(settings, shards),
                order,
                TinyRuns.tokens(37),
                TinyRuns.roughWeights());
    }

    private static PipelineDriver single(GptSettings settings) {
        return new PipelineDriver(
                settings, order(settings), TinyRuns.tokens(37), TinyRuns.roughWeights());
    }

    @ParameterizedTest(name = "tied {0}, {1} stages, {2} shards, slices {3}")
    @CsvSource({
        "true, 1, 1, 16",
        "true, 1, 2, 16",
        "true, 1, 4, 16",
        "true, 2, 2, 16",
        "true, 2, 4, 8 8",
        "false, 1, 2, 16",
        "false, 1, 4, 7 9",
        "false, 2, 2, 8 8",
        "false, 4, 2, 4 12",
    })
    void lossesAndGradientsAreThoseOfOneDevice(
            boolean tied, int stages, int shards, String lengths) {
        List<Integer> slices = Arrays.stream(lengths.split(" ")).map(Integer::valueOf).toList();
        GptSettings settings = settings(tied, stages, slices);
        try (PipelineDriver one = single(settings);
                ShardedPipelines all = sharded(settings, shards, order(settings))) {

            assertClose(all.state(), one.state(), 0);
            for (int step = 1; step <= 2; step++) {
                assertThat(all.evaluate(step)).isCloseTo(one.evaluate(step), within(1e-5));
                assertThat(all.train(step)).isCloseTo(one.train(step), within(1e-5));
                assertClose(all.gradients(), one.gradients(), 1e-5);
            }
        }
    }

    @ParameterizedTest(name = "tied {0}, {1} stages, {2} shards, slices {3}")
    @CsvSource({
        "true, 1, 2, 16",
        "true, 2, 4, 16",
        "true, 1, 2, 8 8",
        "false, 2, 2, 8 8",
        "false, 4, 2, 4 12",
        "true, 2, 2, 5 3 8",
    })
    void shardsThatDivideRowsComputeTheSame(boolean tied, int stages, int shards, String lengths) {
        List<Integer> slices = Arrays.stream(lengths.split(" ")).map(Integer::valueOf).toList();
        GptSettings whole = settings(tied, stages, slices);
        for (GptSettings settings : List.of(whole, TinyRuns.recomputing(whole, Set.of(0, 1)))) {
            Schedule order = order(settings);
            for (Schedule each :
                    List.of(order, Orders.split(order, 1), InsertRecompute.into(order))) {
                try (PipelineDriver one = single(settings);
                        ShardedPipelines all =
                                sharded(TinyRuns.sequenceParallel(settings), shards, each)) {

                    for (int step = 1; step <= 2; step++) {
                        assertThat(all.evaluate(step)).isCloseTo(one.evaluate(step), within(1e-5));
                        assertThat(all.train(step)).isCloseTo(one.train(step), within(1e-5));
                        assertClose(all.gradients(), one.gradients(), 1e-5);
                    }
                }
            }
        }
    }

    @Test
    void shardsDivideNoRowsThatTheyDoNotDivide() {
        GptSettings settings = TinyRuns.sharded(settings(true, 1, List.of(3, 13)), 4);

        assertThatThrownBy(() -> TinyRuns.sequenceParallel(settings))
                .hasMessage(
                        "tensor shards divide the rows of every unit: expected multiples of 4"
                                + " shards, got units of [6, 26] rows (2 sequences, slices of"
                                + " [3, 13] tokens, 1 context parts)");
    }

    @ParameterizedTest(name = "{0} shards, rows divided {1}, slices {2}")
    @CsvSource({"2, false, 16", "4, false, 8 8", "2, true, 16", "4, true, 8 8", "2, true, 5 3 8"})
    void sentIsWhatIsPredicted(int shards, boolean sequence, String lengths) {
        List<Integer> slices = Arrays.stream(lengths.split(" ")).map(Integer::valueOf).toList();
        GptSettings whole = TinyRuns.sharded(settings(true, 2, slices), shards);
        GptSettings plain = sequence ? TinyRuns.sequenceParallel(whole) : whole;
        FineTuning adapters =
                new FineTuning(
                        Optional.of(
                                new Adapters(
                                        3,
                                        6,
                                        AdapterParts.places(
                                                Families.GPT2,
                                                plain.shape(),
                                                List.of(AdapterParts.ALL)))),
                        List.of());
        for (GptSettings settings :
                List.of(plain, TinyRuns.recomputing(plain, Set.of(1)), plain.training(adapters))) {
            Schedule order = order(settings);
            for (Schedule each :
                    List.of(order, Orders.split(order, 1), InsertRecompute.into(order))) {
                try (ShardedPipelines all = sharded(settings, shards, each)) {
                    all.train(1);
                    for (int shard = 0; shard < shards; shard++) {
                        long predicted = 0;
                        for (int rank = 0; rank < 2; rank++) {
                            predicted +=
                                    new ActivationTraffic(
                                                    settings,
                                                    new RankPlace(rank, shard, 0, 0),
                                                    each.programs().get(rank).ops(),
                                                    CollectiveForm.NEVER,
                                                    ChannelCodecs.NONE)
                                            .shards();
                        }
                        assertThat(all.sentBytes(shard)).isEqualTo(predicted);
                    }
                }
            }
        }
    }

    /** Two all-reduces are as much as a gather and a reduce-scatter each: 8bsh (t-1)/t. */
    @Test
    void dividingRowsSendsAsMuchForward() {
        GptSettings settings = TinyRuns.sharded(settings(false, 4, List.of(16)), 2);
        List<Op> forward = List.of(new Op.Forward(new WorkUnit(1, 0, 0)));
        RankPlace place = new RankPlace(1, 0, 0, 0);

        long summed =
                new ActivationTraffic(
                                settings, place, forward, CollectiveForm.NEVER, ChannelCodecs.NONE)
                        .shards();
        long divided =
                new ActivationTraffic(
                                TinyRuns.sequenceParallel(settings),
                                place,
                                forward,
                                CollectiveForm.NEVER,
                                ChannelCodecs.NONE)
                        .shards();

        long block = 2 * 2 * (2 * 16 * 24) * 4L / 2;
        assertThat(summed).isEqualTo(block);
        int norms = 4 * 24 * 4;
        assertThat(divided - norms).isEqualTo(block);
    }

    @Test
    void dividedRowsOfTheStreamAndTheNormsAreHeldOnce() {
        ModelShape gpt2 = ModelShape.gpt2(50257, 1024, 768, 12, 12, true);
        GptSettings whole = TinyRuns.settings(gpt2, 1, BatchShape.unsliced(1, 1, 1024, 128));
        long d = 768;
        for (int shards : List.of(1, 2, 4)) {
            GptSettings settings = TinyRuns.sequenceParallel(TinyRuns.sharded(whole, shards));
            GptStageFactory factory =
                    new GptStageFactory(
                            settings,
                            List.of(new StageBudget(1, List.of(1), 1, 1)),
                            TinyRuns.tokens(50257),
                            (_, _, _) -> true); // no value matters: nothing is drawn

            StageMemory memory = factory.predictedMemory(0, new RankPlace(0, 0, 0, 0));

            // Korthikanti et al., table 2: everything is divided
            long row = 12 * ((3 + 1 + 8) * d + 4 * d + 4 + 12) + 2 * d + 2;
            assertThat(memory.activations() + memory.keyValues())
                    .isBetween(
                            4 * 1024 * row / shards, 4 * 1024 * (row / shards + 16 + 3L * shards));
            try (Device device = Devices.open(REFERENCE);
                    GptStage stage = factory.create(0, new RankPlace(0, 0, 0, 0), device)) {
                assertThat(stage.memory()).isEqualTo(memory);
                assertThat(stage.boundaryRows(0)).isEqualTo(1024 / shards);
                assertThat(settings.boundaryRows()).isEqualTo(1024 / shards);
            }
        }
    }

    @Test
    void oneShardGivesTheBitsOfNone() {
        GptSettings settings = settings(true, 2, List.of(16));
        try (PipelineDriver one = single(settings);
                ShardedPipelines all = sharded(settings, 1, order(settings))) {

            assertThat(all.train(1)).isEqualTo(one.train(1));
            assertClose(all.gradients(), one.gradients(), 0);
        }
    }

    @ParameterizedTest(name = "{0} shards")
    @CsvSource({"2", "4"})
    void slicesPartsOfBackwardsAndRecomputingDoNotChangeABit(int shards) {
        GptSettings whole = settings(true, 2, List.of(16));
        GptSettings sliced = settings(true, 2, List.of(8, 8));
        Map<String, float[]> expected = gradients(whole, shards, order(whole));

        assertClose(gradients(sliced, shards, order(sliced)), expected, 0);
        for (GptSettings settings : List.of(whole, sliced)) {
            Schedule order = order(settings);
            assertClose(gradients(settings, shards, Orders.split(order, 1)), expected, 0);
            assertClose(gradients(settings, shards, InsertRecompute.into(order)), expected, 0);
            GptSettings again = TinyRuns.recomputing(settings, Set.of(0, 1));
            assertClose(gradients(again, shards, order), expected, 0);
        }
    }

    private static Map<String, float[]> gradients(GptSettings s, int shards, Schedule order) {
        try (ShardedPipelines all = sharded(s, shards, order)) {
            all.train(1);
            return all.gradients();
        }
    }

    @ParameterizedTest(name = "tied {0}, {1} stages, {2} shards")
    @CsvSource({"true, 1, 2", "true, 2, 4", "false, 2, 2", "false, 1, 4"})
    void shardsFollowTheGoldenRun(boolean tied, int stages, int shards) {
        try (Golden golden = new Golden(tied)) {
            BatchShape batch = new BatchShape(1, 4, List.of(8, 8), 8);
            GptSettings settings =
                    GptSettings.of(
                            golden.shape(),
                            StagePartition.byFlops(golden.shape(), stages),
                            batch,
                            Precision.FLOAT32,
                            new AdamWSettings(
                                    LearningRate.constant(0.01), 0.9, 0.95, 1e-8, 0.1, true),
                            42);
            List<Double> losses = golden.numbers("loss_fp64_accum4");
            try (ShardedPipelines all =
                    new ShardedPipelines(
                            REFERENCE,
                            TinyRuns.sharded(settings, shards),
                            Orders.oneForwardOneBackward(stages, 4, 2),
                            golden.batches(1),
                            golden.initial())) {

                for (int step = 1; step <= losses.size(); step++) {
                    double expected = losses.get(step - 1);
                    assertThat(all.train(step))
                            .as("step %d", step)
                            .isCloseTo(expected, within(2e-4));
                    if (step == 1) {
                        Map<String, float[]> gradients = all.gradients();
                        golden.firstGradients()
                                .forEach(
                                        (name, g) ->
                                                assertClose(name, gradients.get(name), g, 1e-5));
                    }
                }
            }
        }
    }

    @ParameterizedTest(name = "{0} shards, {1}")
    @CsvSource({"2, FLOAT32", "4, FLOAT32", "2, BF16"})
    void whatAllShardsHoldStaysEqualToTheBit(int shards, Precision precision) {
        GptSettings settings =
                TinyRuns.settings(shape(true), 2, TinyRuns.batch(List.of(16)), precision);
        DeviceSettings cpu = DeviceSettings.DEFAULTS.withKind(DeviceSettings.Kind.CPU);
        try (ShardedPipelines all =
                new ShardedPipelines(
                        cpu.withGemm(DeviceSettings.Gemm.JAVA).withThreads(1),
                        TinyRuns.sharded(settings, shards),
                        order(settings),
                        TinyRuns.tokens(37),
                        TinyRuns.roughWeights())) {
            Map<String, int[]> before = common(all.drivers().getFirst());

            for (int step = 1; step <= 10; step++) {
                all.train(step);
            }

            Map<String, int[]> first = common(all.drivers().getFirst());
            assertThat(first.get("h.1.mlp.c_proj.bias"))
                    .isNotEqualTo(before.get("h.1.mlp.c_proj.bias"));
            for (PipelineDriver other : all.drivers()) {
                assertThat(common(other)).usingRecursiveComparison().isEqualTo(first);
            }
        }
    }

    private static int[] bits(Tensor tensor) {
        return tensor.segment().toArray(ValueLayout.JAVA_INT);
    }

    /** Bits of what a driver's shard holds whole: weights and moments. */
    private static Map<String, int[]> common(PipelineDriver driver) {
        Map<String, int[]> bits = new TreeMap<>();
        for (GptStage stage : driver.stages()) {
            stage.parameters().stream()
                    .flatMap(parameter -> parameter.state().stream())
                    .filter(named -> named.piece().isWhole())
                    .forEach(named -> bits.put(named.name(), bits(named.tensor())));
        }
        assertThat(bits.keySet().stream().filter(name -> !name.startsWith("optimizer.")))
                .hasSize(1 + 2 * 6 + 2);
        return bits;
    }

    @Test
    void aBrokenWeightOfOneShardIsNamedByAllWhereItFirstShows() {
        GptSettings settings = settings(true, 1, List.of(16));
        ParameterSource source =
                (name, piece, destination) -> {
                    boolean filled = TinyRuns.roughWeights().fill(name, piece, destination);
                    if (name.equals("h.0.mlp.c_fc.bias")) {
                        piece.walk(
                                (inWhole, inPiece, count) -> {
                                    if (inWhole <= 90 && 90 < inWhole + count) {
                                        destination.setAtIndex(
                                                ValueLayout.JAVA_FLOAT,
                                                inPiece + 90 - inWhole,
                                                Float.NaN);
                                    }
                                });
                    }
                    return filled;
                };
        try (ShardedPipelines all =
                new ShardedPipelines(
                        REFERENCE,
                        TinyRuns.sharded(settings, 2),
                        order(settings),
                        TinyRuns.tokens(37),
                        source)) {

            List<Throwable> thrown =
                    all.onAll(
                            driver -> {
                                try {
                                    driver.train(1);
                                    return new AssertionError("not noticed");
                                } catch (NonFiniteException e) {
                                    return e;
                                }
                            });

            assertThat(thrown)
                    .allSatisfy(
                            e -> assertThat(e).hasMessageContaining("input of h.1.ln_1 (forward)"));
        }
    }

    @Test
    void aShardHoldsItsPartOfTheMatricesAndOfTheActivations() {
        ModelShape gpt2 = ModelShape.gpt2(50257, 1024, 768, 12, 12, true);
        GptSettings whole = TinyRuns.settings(gpt2, 1, BatchShape.unsliced(1, 1, 1024, 128));
        long d = 768;
        for (int shards : List.of(1, 2, 4, 12)) {
            GptStageFactory factory =
                    new GptStageFactory(
                            TinyRuns.sharded(whole, shards),
                            List.of(new StageBudget(1, List.of(1), 1, 1)),
                            TinyRuns.tokens(50257),
                            ParameterSource.none());
            long rows = 0;
            for (int t = 0; t < shards; t++) {
                StageMemory memory = factory.predictedMemory(0, new RankPlace(0, t, 0, 0));
                long tokens = 50257L * (t + 1) / shards - 50257L * t / shards;
                rows += tokens;

                long block = (12 * d * d + 7 * d) / shards + 6 * d;
                long parameters = 12 * block + (tokens + 1024) * d + 2 * d;
                assertThat(memory.parameters()).isEqualTo(4 * parameters);
                assertThat(memory.optimizer()).isEqualTo(8 * parameters);
                assertThat(memory.gradients()).isEqualTo(4 * (parameters + tokens * d));
                // qkv, attention, hidden twice; x, norms, middle; moments and log sums
                long row = 12 * ((3 + 1 + 8) * d / shards + 4 * d + 4 + 12 / shards) + 2 * d + 2;
                assertThat(memory.activations() + memory.keyValues())
                        .isBetween(4 * 1024 * row, 4 * 1024 * (row + 16 + 3L * shards));
            }
            assertThat(rows).isEqualTo(50257);
        }
    }

    @Test
    void shardsThatDoNotFitAreRefused() {
        GptSettings settings = settings(true, 1, List.of(16));

        assertThatThrownBy(() -> TinyRuns.sharded(settings, 3))
                .hasMessageContaining("expected a divisor of 4 heads, got 3 shards; try 2");
        try (ShardedPipelines all = sharded(settings, 2, order(settings))) {
            GptStage stage = all.drivers().get(1).stages().getFirst();

            assertThatThrownBy(() -> stage.connect(StageGroups.ALONE))
                    .hasMessage("expected a group for tensor shard 1 of 2, got member 0 of 1");
        }
    }

    @Test
    void aVocabularyThatDoesNotDivideIsSaid() {
        GptSettings settings = settings(true, 1, List.of(16));

        assertThat(settings.vocabularyNote()).isEmpty();
        assertThat(TinyRuns.sharded(settings, 2).vocabularyNote())
                .hasValue(
                        "2 tensor shards do not divide the vocabulary of 37 evenly: they hold 18 or 19"
                                + " tokens each; nothing is padded");
    }

    @Test
    void theMirrorOfAShardHoldsTheSamePieces() {
        GptSettings settings = TinyRuns.sharded(settings(false, 1, List.of(16)), 4);
        GptStageFactory factory =
                new GptStageFactory(
                        settings,
                        List.of(StageBudget.everything(settings.batch())),
                        TinyRuns.tokens(37),
                        TinyRuns.roughWeights());
        RankPlace place = new RankPlace(0, 3, 0, 0);
        try (Device device = Devices.open(REFERENCE);
                GptStage stage = factory.create(0, place, device);
                StageMirror mirror = factory.mirror(0, place, device)) {
            List<NamedTensor> held = stage.trained().tensors();
            List<NamedTensor> mirrored = mirror.trained().tensors();

            assertThat(mirrored).hasSameSizeAs(held);
            for (int i = 0; i < held.size(); i++) {
                assertThat(mirrored.get(i).name()).isEqualTo(held.get(i).name());
                assertThat(mirrored.get(i).piece()).isEqualTo(held.get(i).piece());
                assertThat(
                                mirrored.get(i)
                                        .tensor()
                                        .segment()
                                        .mismatch(held.get(i).tensor().segment()))
                        .isEqualTo(-1);
            }
        }
    }

    private static void assertClose(
            Map<String, float[]> actual, Map<String, float[]> expected, double tolerance) {
        assertThat(actual.keySet()).isEqualTo(expected.keySet());
        expected.forEach(
                (name, values) -> {
                    double[] doubles = new double[values.length];
                    for (int i = 0; i < values.length; i++) {
                        doubles[i] = values[i];
                    }
                    assertClose(name, actual.get(name), doubles, tolerance);
                });
    }

    /** Relative in the L2 norm. */
    private static void assertClose(
            String name, float @Nullable [] actual, double[] expected, double tolerance) {
        float[] values = Objects.requireNonNull(actual, name);
        assertThat(values).as(name).hasSameSizeAs(expected);
        double distance = 0;
        double norm = 0;
        for (int i = 0; i < expected.length; i++) {
            distance += Math.pow(values[i] - expected[i], 2);
            norm += expected[i] * expected[i];
        }
        assertThat(Math.sqrt(distance)).as(name).isLessThanOrEqualTo(tolerance * Math.sqrt(norm));
    }
}
