package dev.penstock.runtime.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.actors.collective.CollectiveForm;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.GradientSum;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.Precision;
import dev.penstock.runtime.model.shape.StageBudget;
import dev.penstock.runtime.model.shape.StageMemory;
import dev.penstock.runtime.model.shape.ZeroSettings;
import dev.penstock.runtime.model.shape.ZeroSettings.Reduction;
import dev.penstock.runtime.model.shape.ZeroSettings.Residency;
import dev.penstock.runtime.model.stage.GptStage;
import dev.penstock.runtime.model.stage.GptStageFactory;
import dev.penstock.runtime.model.stage.ShardTraffic;
import dev.penstock.runtime.model.stage.StageBytes;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.generate.base.GenerateOptions;
import dev.penstock.schedules.ir.LayerRange;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.simulate.ReplicaTraffic;
import dev.penstock.schedules.validate.MemoryModel;
import dev.penstock.schedules.validate.RankBytes;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What dividing saves in memory and costs in traffic: predicted, measured, and by formula. */
class ZeroCostsTest {
    /** Every group of it divides by 8 into 64-byte lines. */
    private static final ModelShape EVEN = ModelShape.gpt2(128, 16, 128, 2, 4, true);

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 4, 8})
    void memoryFollowsTheGeneralFormula(int replicas) {
        ModelShape shape = ModelShape.gpt2(512, 64, 96, 4, 4, false);
        for (Precision precision : Precision.values()) {
            GptSettings one =
                    TinyRuns.settings(shape, 1, BatchShape.unsliced(1, 2, 64, 16), precision);
            for (int stage = 0; stage <= 3; stage++) {
                GptSettings settings =
                        TinyRuns.replicated(
                                one, replicas, new ZeroSettings(stage, Residency.LAYER, 1));
                double parameters = 2 * 512 * 96 + 64 * 96 + 4.0 * (12 * 96 * 96 + 13 * 96) + 192;
                double master = precision.copiesWeights() ? 4 : 0;
                double tables = precision.copiesWeights() ? 512 * 96 + 64 * 96 : 0;
                double read = precision.copiesWeights() ? 2 : 4;
                int n = replicas;

                StageMemory memory = factory(settings).predictedMemory(0, place(replicas - 1));

                double factors = parameters - tables;
                double p =
                        n == 1 || stage < 1
                                ? (read + master) * factors + 4 * tables
                                : stage < 3
                                        ? (read + master / n) * factors + 4 * tables
                                        : 4 * parameters / n;
                double g = 4 * parameters / (stage < 2 ? 1 : n);
                double o = 8 * parameters / (stage < 1 ? 1 : n);
                String as = "%s, stage %d of %d".formatted(precision, stage, replicas);
                assertThat(memory.parameters() / p).as(as).isCloseTo(1, within(0.05));
                assertThat(memory.gradients() / g).as(as).isCloseTo(1, within(0.05));
                assertThat(memory.optimizer() / o).as(as).isCloseTo(1, within(0.05));
                assertThat(memory.gathered() > 0).as(as).isEqualTo(stage == 3 && n > 1);
                assertThat(memory.accumulators() > 0).as(as).isEqualTo(stage >= 2 && n > 1);
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"2, LAYER", "3, PASS", "8, LAYER"})
    void measuredMemoryIsThePredicted(int replicas, Residency residency) {
        GptSettings one =
                TinyRuns.settings(TinyRuns.TIED, 2, TinyRuns.batch(List.of(16)), Precision.BF16);
        for (int zero = 0; zero <= 3; zero++) {
            GptStageFactory factory =
                    factory(
                            TinyRuns.replicated(
                                    one, replicas, new ZeroSettings(zero, residency, 1)));
            for (int stage = 0; stage < 2; stage++) {
                RankPlace place = place(replicas - 1);
                try (Device device = Devices.open(DeviceSettings.DEFAULTS);
                        GptStage built = factory.create(stage, place, device)) {
                    StageMemory predicted = factory.predictedMemory(stage, place);

                    assertThat(built.memory()).isEqualTo(predicted);
                    assertThat(device.memory().liveBytes()).isEqualTo(predicted.total());
                }
            }
        }
    }

    /** Where a rank works on one of its stages at a time, it has room for one at a time. */
    @ParameterizedTest
    @CsvSource({
        "breadth-first, 2, PER_STEP, PASS",
        "breadth-first, 3, PER_STEP, STEP",
        "interleaved-1f1b, 2, PER_MICRO_BATCH, PASS",
        "interleaved-1f1b, 2, PER_STEP, MICRO_BATCH",
        "zb-v, 2, PER_MICRO_BATCH, PASS",
        "zb-v, 2, PER_STEP, LAYER"
    })
    void stagesOfARankShareWhatTheyDoNotNeedAtATime(
            String kind, int chunks, Reduction reduction, Residency residency) {
        int ranks = 2;
        Schedule order = order(kind, ranks, chunks, 4);
        ModelShape shape = ModelShape.gpt2(64, 16, 64, 2 * ranks * chunks, 4, false);
        for (int zero : List.of(2, 3)) {
            GptSettings settings =
                    settings(
                            shape,
                            order,
                            2,
                            new ZeroSettings(zero, residency, 1).reducing(reduction));
            Schedule training = new ReplicatedOrder(settings, order).training();
            GptStageFactory factory = factory(settings).following(List.of(training));
            for (int rank = 0; rank < ranks; rank++) {
                List<Integer> stages = order.placement().stagesOf(rank);
                RankPlace place = new RankPlace(rank, 0, 0, 1);
                StageMemory predicted = factory.predictedMemory(stages, place);
                StageMemory apart =
                        stages.stream()
                                .map(stage -> factory(settings).predictedMemory(stage, place))
                                .reduce(StageMemory.NOTHING, StageMemory::plus);
                int accumulating = mostAccumulating(training, rank);
                int gathered = zero < 3 ? 0 : mostGathered(training, rank);
                long blocks = 2 * 4L * (12 * 64 * 64 + 13 * 64);
                String as = "%s, ZeRO %d, rank %d".formatted(order.name(), zero, rank);

                assertThat(predicted.accumulators() - edges(rank, ranks, kind, accumulating))
                        .as(as)
                        .isEqualTo(accumulating * blocks);
                assertThat(apart.accumulators() - edges(rank, ranks, kind, chunks))
                        .isEqualTo(chunks * blocks);
                if (residency != Residency.LAYER) {
                    assertThat(
                                    predicted.gathered()
                                            - (zero < 3 ? 0 : edges(rank, ranks, kind, gathered)))
                            .as(as)
                            .isEqualTo(gathered * blocks);
                } else if (zero == 3) {
                    assertThat(predicted.gathered())
                            .isLessThanOrEqualTo(blocks + edges(rank, ranks, kind, 1));
                }
                assertThat(judged(factory, training, rank).gatheredBytes())
                        .as(as)
                        .isEqualTo(residency == Residency.LAYER ? 0 : predicted.gathered());
                try (Device device = Devices.open(DeviceSettings.DEFAULTS)) {
                    List<GptStage> built = factory.createAll(stages, place, device);
                    assertThat(
                                    built.stream()
                                            .map(GptStage::memory)
                                            .reduce(StageMemory.NOTHING, StageMemory::plus))
                            .isEqualTo(predicted);
                    assertThat(device.memory().liveBytes()).isEqualTo(predicted.total());
                    built.reversed().forEach(GptStage::close);
                    assertThat(device.memory().liveBytes()).isZero();
                }
            }
        }
    }

    /** The most that the judge proves a rank to have gathered. */
    private static RankBytes judged(GptStageFactory factory, Schedule training, int rank) {
        List<StageBytes> bytes =
                IntStream.range(0, training.shape().stages())
                        .mapToObj(
                                s ->
                                        factory.bytes(
                                                s,
                                                new RankPlace(
                                                        training.placement().rankOf(s), 0, 0, 1)))
                        .toList();
        List<List<Long>> nothing = Collections.nCopies(bytes.size(), List.of(0L));
        var model =
                new MemoryModel(
                        nothing, nothing, bytes.stream().map(StageBytes::gatheredLayers).toList());
        return RankBytes.of(training, PassKind.TRAINING, model).get(rank);
    }

    /**
     * Bytes of tables, final norm and head on a rank; the first and last stage have them. Where one
     * rank has both, and never both at a time, the head's matrix takes the room of the table.
     */
    private static long edges(int rank, int ranks, String kind, int together) {
        long matrix = 4L * 64 * 64;
        long first = matrix + 4L * 16 * 64;
        long last = matrix + 4L * 2 * 64;
        boolean vShaped = kind.equals("zb-v");
        if (vShaped && rank == 0) {
            return first + last - (together == 1 ? matrix : 0);
        }
        return (rank == 0 ? first : 0) + (rank == ranks - 1 && !vShaped ? last : 0);
    }

    /** Stages between a first weight gradient and the sum. */
    private static int mostAccumulating(Schedule training, int rank) {
        Set<Integer> open = new HashSet<>();
        int most = 0;
        for (Op op : training.program(rank).ops()) {
            for (Op.Compute part : op.computations()) {
                if (!(part instanceof Op.Forward)) {
                    open.add(part.stage());
                }
            }
            most = Math.max(most, open.size());
            if (op instanceof Op.ReduceGradients(int stage)) {
                open.remove(stage);
            }
        }
        return most;
    }

    private static int mostGathered(Schedule training, int rank) {
        Set<Integer> here = new HashSet<>();
        int most = 0;
        for (Op op : training.program(rank).ops()) {
            if (op instanceof Op.GatherParameters(int stage, LayerRange _)) {
                here.add(stage);
            } else if (op instanceof Op.ReleaseParameters(int stage, LayerRange _)) {
                here.remove(stage);
            }
            most = Math.max(most, here.size());
        }
        return most;
    }

    @ParameterizedTest
    @CsvSource({
        "1f1b, 2, 1, 3, TIED",
        "breadth-first, 2, 2, 2, TIED",
        "interleaved-1f1b, 2, 2, 2, UNTIED",
        "zb-h1, 2, 1, 2, UNTIED"
    })
    void measuredTrafficIsThePredicted(
            String kind, int ranks, int chunks, int replicas, String tied) throws Exception {
        Schedule order = order(kind, ranks, chunks, 4);
        ModelShape shape = tied.equals("TIED") ? TinyRuns.TIED : TinyRuns.UNTIED;
        for (ZeroSettings zero : all()) {
            for (GradientSum sum : GradientSum.values()) {
                GptSettings settings = settings(shape, order, replicas, zero).summing(sum);
                expectPredictedTraffic(settings, order);
            }
        }
    }

    private static void expectPredictedTraffic(GptSettings settings, Schedule order)
            throws Exception {
        try (var driver = new ReplicatedDriver(settings, order, TinyRuns.tokens(37))) {
            driver.train(1, 1);
            for (int replica = 0; replica < settings.grid().data(); replica++) {
                var sizes = new ShardTraffic(settings, place(replica), CollectiveForm.NEVER);
                List<ReplicaTraffic> predicted = traffic(driver.training(), sizes);
                for (int rank = 0; rank < predicted.size(); rank++) {
                    assertThat(driver.sentBytes(replica, rank))
                            .as(
                                    "%s, %s, replica %d, rank %d",
                                    settings.zero(), settings.gradientSum(), replica, rank)
                            .isEqualTo(predicted.get(rank).bytes());
                }
            }
        }
    }

    /**
     * Exact sums take 8 bytes of a parameter, and what their micro-batches add to 4 for each that
     * is between the first and the last op of its backward; one of them has the gradient's own.
     */
    @ParameterizedTest
    @CsvSource({
        "1f1b, 1, 0",
        "gpipe, 1, 0",
        "zb-h1, 1, 1",
        "zb-h2, 1, 1",
        "interleaved-1f1b, 2, 0",
        "zb-v, 2, 1"
    })
    void exactSumsTakeWhatTheOrderNeeds(String kind, int chunks, int atLeastOnARank) {
        int ranks = 3;
        int most = 0;
        Schedule order = order(kind, ranks, chunks, 4);
        ModelShape shape = ModelShape.gpt2(64, 16, 64, 2 * ranks * chunks, 4, false);
        long block = 12L * 64 * 64 + 13 * 64;
        for (int zero = 0; zero <= 3; zero++) {
            GptSettings floats =
                    settings(shape, order, 2, new ZeroSettings(zero, Residency.PASS, 1));
            GptSettings exact = floats.summing(GradientSum.FIXED_POINT);
            Schedule training = new ReplicatedOrder(exact, order).training();
            for (int rank = 0; rank < ranks; rank++) {
                List<Integer> stages = order.placement().stagesOf(rank);
                RankPlace place = new RankPlace(rank, 0, 0, 1);
                GptStageFactory factory = factory(exact).following(List.of(training));
                StageMemory without =
                        factory(floats).following(List.of(training)).predictedMemory(stages, place);
                StageMemory predicted = factory.predictedMemory(stages, place);

                String as = "%s, ZeRO %d, rank %d".formatted(kind, zero, rank);
                assertThat(predicted.gradients()).as(as).isEqualTo(3 * without.gradients());
                if (zero < 2) {
                    int scratches = scratches(training.program(rank));
                    most = Math.max(most, scratches);
                    assertThat(predicted.accumulators() / (2 * 4 * block))
                            .as(as)
                            .isEqualTo(scratches);
                } else {
                    long rows = without.accumulators();
                    assertThat(predicted.accumulators()).as(as).isGreaterThan(2 * rows);
                }
                try (Device device = Devices.open(DeviceSettings.DEFAULTS)) {
                    List<GptStage> built = factory.createAll(stages, place, device);
                    assertThat(device.memory().liveBytes()).isEqualTo(predicted.total());
                    built.reversed().forEach(GptStage::close);
                    assertThat(device.memory().liveBytes()).isZero();
                }
            }
        }
        assertThat(most).isGreaterThanOrEqualTo(atLeastOnARank);
    }

    /**
     * The most micro-batches at a time that are between the first and the last op of their backward
     * at a stage, all but the first of each stage.
     */
    private static int scratches(RankProgram program) {
        int most = 0;
        for (int at = 0; at < program.ops().size(); at++) {
            Map<Integer, Set<Integer>> open = new HashMap<>();
            for (WorkUnit before : backwards(program.ops().subList(0, at + 1))) {
                for (WorkUnit after : backwards(program.ops().subList(at, program.ops().size()))) {
                    if (before.stage() == after.stage()
                            && before.microBatch() == after.microBatch()) {
                        open.computeIfAbsent(before.stage(), _ -> new HashSet<>())
                                .add(before.microBatch());
                    }
                }
            }
            int here = open.values().stream().mapToInt(units -> units.size() - 1).sum();
            most = Math.max(most, here);
        }
        return most;
    }

    private static List<WorkUnit> backwards(List<Op> ops) {
        return ops.stream()
                .flatMap(op -> op.computations().stream())
                .filter(op -> !(op instanceof Op.Forward))
                .map(Op.Compute::unit)
                .toList();
    }

    /** Stage 0 on rank 0 and stage 1 on rank 1 are gathered once forward and once backward. */
    @ParameterizedTest
    @CsvSource({"0, 2", "1, 2", "2, 2", "3, 3"})
    void anOrderThatGathersOncePerPassSendsWhatThePaperSays(int stage, int times) throws Exception {
        int n = 2;
        Schedule order = order("breadth-first", 2, 2, 2);
        ModelShape shape = ModelShape.gpt2(128, 16, 128, 4, 4, false);
        GptSettings settings =
                settings(shape, order, n, new ZeroSettings(stage, Residency.PASS, 1));
        List<ReplicaTraffic> traffic =
                traffic(
                        new ReplicatedOrder(settings, order).training(),
                        new ShardTraffic(settings, place(0), CollectiveForm.NEVER));

        long block = 12L * 128 * 128 + 13 * 128;
        long lowStage = (128 + 16) * 128 + block; // of rank 0, gathered once per pass
        long highStage = block; // its second, which turns at once from forward to backward
        long elements = lowStage + highStage;
        long turning = stage == 3 ? highStage : 0;
        assertThat(traffic.getFirst().bytes())
                .isEqualTo(4 * (times * elements - turning) * (n - 1) / n);
    }

    @Test
    void summingPerMicroBatchCostsTrafficPerMicroBatch() {
        Schedule order = order("1f1b", 2, 1, 4);
        var once = new ZeroSettings(2, Residency.STEP, 0);
        GptSettings settings = settings(EVEN, order, 2, once);
        GptSettings often = settings(EVEN, order, 2, once.reducing(Reduction.PER_MICRO_BATCH));

        long perStep = untied(settings, order);
        long perMicroBatch = untied(often, order);

        assertThat(perMicroBatch).isEqualTo(4 * perStep);
    }

    /** Reductions of rank 0 of a model whose stages share nothing. */
    private static long untied(GptSettings tied, Schedule order) {
        ModelShape shape = ModelShape.gpt2(128, 16, 128, 2, 4, false);
        GptSettings settings = settings(shape, order, 2, tied.zero());
        return traffic(
                        new ReplicatedOrder(settings, order).training(),
                        new ShardTraffic(settings, place(0), CollectiveForm.NEVER))
                .getFirst()
                .reductionBytes();
    }

    /** Of all ranks of a schedule; entry r is of rank r. */
    private static List<ReplicaTraffic> traffic(Schedule schedule, ShardTraffic sizes) {
        return schedule.programs().stream()
                .map(program -> ReplicaTraffic.of(program, sizes))
                .toList();
    }

    private static List<ZeroSettings> all() {
        return Stream.concat(
                        Stream.of(
                                new ZeroSettings(0, Residency.STEP, 0),
                                new ZeroSettings(1, Residency.STEP, 0),
                                new ZeroSettings(2, Residency.STEP, 0)
                                        .reducing(Reduction.PER_MICRO_BATCH)),
                        Stream.of(Residency.values()).map(r -> new ZeroSettings(3, r, 1)))
                .toList();
    }

    private static GptStageFactory factory(GptSettings settings) {
        return new GptStageFactory(
                settings,
                Collections.nCopies(
                        settings.partition().stages(), StageBudget.everything(settings.batch())),
                TinyRuns.tokens(settings.shape().vocabulary()),
                ParameterSource.none());
    }

    private static RankPlace place(int replica) {
        return new RankPlace(0, 0, 0, replica);
    }

    private static GptSettings settings(
            ModelShape shape, Schedule order, int replicas, ZeroSettings zero) {
        return TinyRuns.replicated(
                TinyRuns.settings(
                        shape,
                        order.shape().stages(),
                        BatchShape.unsliced(1, order.shape().microBatches(), 16, 4)),
                replicas,
                zero);
    }

    private static Schedule order(String kind, int ranks, int chunks, int microBatches) {
        return Generators.generate(
                kind,
                new PipelineShape(ranks, chunks, microBatches, List.of(16)),
                GenerateOptions.defaults());
    }
}
