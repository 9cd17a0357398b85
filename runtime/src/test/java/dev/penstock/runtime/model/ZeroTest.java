package dev.penstock.runtime.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;
import static org.assertj.core.api.Assertions.withinPercentage;

import dev.penstock.actors.spi.RankPlace;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.Precision;
import dev.penstock.runtime.model.shape.StageBudget;
import dev.penstock.runtime.model.shape.StageMemory;
import dev.penstock.runtime.model.shape.ZeroSettings;
import dev.penstock.runtime.model.shape.ZeroSettings.Reduction;
import dev.penstock.runtime.model.shape.ZeroSettings.Residency;
import dev.penstock.runtime.model.stage.GptStage;
import dev.penstock.runtime.model.stage.GptStageFactory;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.generate.base.GenerateOptions;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.GatherSettings;
import dev.penstock.schedules.lower.InsertParameterGathers;
import dev.penstock.schedules.lower.ParameterResidency;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Replicas whose moments, gradients and parameters are divided compute what whole ones do. */
class ZeroTest {
    private static final int STEPS = 3;
    private static final double CLIP = 0.5;

    @ParameterizedTest
    @CsvSource({
        "2, 1f1b, 2, 1, 16, FLOAT32",
        "2, 1f1b, 1, 1, 16, FLOAT32",
        "2, breadth-first, 2, 2, 16, FLOAT32",
        "3, interleaved-1f1b, 2, 2, 16, FLOAT32",
        "2, zb-h1, 3, 1, 16, FLOAT32",
        "2, zb-v, 2, 2, 16, FLOAT32",
        "4, seq1f1b, 2, 1, 8 8, FLOAT32",
        "2, 1f1b, 2, 1, 16, BF16",
        "3, 1f1b, 1, 1, 16, BF16"
    })
    void whatIsShardedDoesNotChangeABit(
            int replicas, String kind, int ranks, int chunks, String slices, Precision precision)
            throws Exception {
        for (ModelShape shape : List.of(TinyRuns.TIED, TinyRuns.UNTIED)) {
            Schedule order = order(kind, ranks, chunks, 12 / replicas, slices);
            GptSettings settings = settings(shape, order, precision);
            Outcome plain = run(settings, order, replicas, new ZeroSettings(0, Residency.STEP, 0));

            for (int stage : List.of(1, 2)) {
                assertThat(
                                run(
                                        settings,
                                        order,
                                        replicas,
                                        new ZeroSettings(stage, Residency.STEP, 0)))
                        .as("stage %d", stage)
                        .isEqualTo(plain);
            }
            for (Residency residency : Residency.values()) {
                for (int ahead : residency == Residency.LAYER ? List.of(0, 1, 9) : List.of(1)) {
                    assertThat(
                                    run(
                                            settings,
                                            order,
                                            replicas,
                                            new ZeroSettings(3, residency, ahead)))
                            .as("stage 3, %s, %d ahead", residency, ahead)
                            .isEqualTo(plain);
                }
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"2, 1f1b, 2, 1", "3, breadth-first, 2, 2", "2, zb-h1, 3, 1", "4, 1f1b, 1, 1"})
    void replicasComputeTheGradientsOfOneThatDoesAllTheWork(
            int replicas, String kind, int ranks, int chunks) throws Exception {
        Schedule part = order(kind, ranks, chunks, 12 / replicas, "16");
        Schedule whole = order(kind, ranks, chunks, 12, "16");
        GptSettings one = settings(TinyRuns.TIED, whole, Precision.FLOAT32);
        for (Reduction reduction : Reduction.values()) {
            var zero = new ZeroSettings(3, Residency.PASS, 1).reducing(reduction);
            GptSettings many =
                    TinyRuns.replicated(
                            settings(TinyRuns.TIED, part, Precision.FLOAT32), replicas, zero);
            try (var single =
                            new PipelineDriver(
                                    one, whole, TinyRuns.tokens(37), ParameterSource.none());
                    var replicated = new ReplicatedDriver(many, part, TinyRuns.tokens(37))) {
                double loss = single.train(1);
                replicated.train(1, CLIP);

                assertThat(replicated.losses().getFirst()).isCloseTo(loss, within(1e-6));
                assertClose(replicated.gradients(), single.gradients());
            }
        }
    }

    /**
     * Two stages share the rank's room for gradients and gathered parameters. The first replica has
     * begun a sum, in which the others are, or are not yet, when the step is given up.
     */
    @ParameterizedTest
    @CsvSource({"2, STEP, PER_STEP", "2, STEP, PER_MICRO_BATCH", "3, PASS, PER_STEP"})
    void aStepThatIsLeftInTheMiddleOfASumLeavesNoTrace(
            int stage, Residency residency, Reduction reduction) throws Exception {
        Schedule order = order("breadth-first", 1, 2, 4, "16");
        GptSettings settings = settings(TinyRuns.TIED, order, Precision.FLOAT32);
        ZeroSettings zero = new ZeroSettings(stage, residency, 1).reducing(reduction);
        Outcome calm = run(settings, order, 3, zero);

        try (ReplicatedDriver driver = driver(settings, order, 3, zero)) {
            List<Op> ops = driver.training().program(0).ops();
            int epoch = 1;
            for (int step = 1; step <= STEPS; step++) {
                for (int sum = 0; sum < ops.size(); sum++) {
                    if (ops.get(sum) instanceof Op.ReduceGradients) {
                        driver.abandon(step, List.of(sum + 1, sum, sum + 1), ++epoch);
                        break;
                    }
                }
                driver.train(step, CLIP);
            }
            assertThat(epoch).isEqualTo(1 + STEPS);
            assertThat(driver.losses()).isEqualTo(calm.losses());
            assertThat(bits(driver.gradients())).isEqualTo(calm.gradients());
            assertThat(bits(driver.state())).isEqualTo(calm.state());
        }
    }

    /** The optimizer changed them in between. */
    @Test
    void parametersThatAnOrderNeverReleasesAreGatheredAnewInTheNextStep() throws Exception {
        Schedule order = order("breadth-first", 2, 2, 2, "16");
        Schedule gathered =
                InsertParameterGathers.into(
                        order, new GatherSettings(ParameterResidency.PER_STEP, 1));
        Schedule kept =
                gathered.withPrograms(
                        gathered.programs().stream().map(ZeroTest::withoutReleases).toList());
        GptSettings settings = settings(TinyRuns.TIED, order, Precision.FLOAT32);
        var zero = new ZeroSettings(3, Residency.STEP, 1);

        assertThat(run(settings, kept, 2, zero)).isEqualTo(run(settings, order, 2, zero));
    }

    private static RankProgram withoutReleases(RankProgram program) {
        return new RankProgram(
                program.rank(),
                program.ops().stream()
                        .filter(op -> !(op instanceof Op.ReleaseParameters))
                        .toList());
    }

    @Test
    void anEvaluationGathersWhatItNeeds() throws Exception {
        Schedule order = order("1f1b", 2, 1, 2, "16");
        GptSettings settings = settings(TinyRuns.TIED, order, Precision.FLOAT32);
        for (var zero :
                List.of(
                        new ZeroSettings(1, Residency.STEP, 0),
                        new ZeroSettings(3, Residency.LAYER, 1),
                        new ZeroSettings(3, Residency.PASS, 1))) {
            try (var plain = driver(settings, order, 2, ZeroSettings.OFF);
                    var sharded = driver(settings, order, 2, zero)) {
                plain.train(1, CLIP);
                sharded.train(1, CLIP);

                assertThat(sharded.evaluate(0)).isEqualTo(plain.evaluate(0));
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"1, 0", "1, 1", "1, 3", "2, 3"})
    void whatLiesOnDiskDoesNotChangeABit(int replicas, int stage, @TempDir Path folder)
            throws Exception {
        Schedule order = order("1f1b", 2, 1, 2, "16");
        GptSettings settings = settings(TinyRuns.TIED, order, Precision.BF16);
        Outcome plain = run(settings, order, replicas, ZeroSettings.OFF);

        for (Residency residency : List.of(Residency.LAYER, Residency.PASS)) {
            var zero = new ZeroSettings(stage, residency, 1).offloadedTo(folder);
            assertThat(run(settings, order, replicas, zero)).as("%s", residency).isEqualTo(plain);
        }
        try (var left = Files.list(folder)) {
            assertThat(left).isEmpty();
        }
    }

    @Test
    void aModelLargerThanTheDeviceTrainsFromDisk(@TempDir Path folder) {
        Schedule order = order("1f1b", 1, 1, 2, "16");
        GptSettings settings =
                settings(ModelShape.gpt2(64, 16, 96, 8, 4, false), order, Precision.FLOAT32);
        var zero = new ZeroSettings(3, Residency.LAYER, 0).offloadedTo(folder);
        GptSettings offloaded = TinyRuns.replicated(settings, 1, zero);
        long plain = factory(settings).predictedMemory(0, RankPlace.single(0)).total();
        StageMemory small = factory(offloaded).predictedMemory(0, RankPlace.single(0));

        assertThat(small.total()).isLessThan(plain - 2 * small.offloaded() / 3);
        assertThat(small.offloaded()).isCloseTo(small.gradients() * 3, withinPercentage(5));
        try (Device device =
                        Devices.open(
                                DeviceSettings.DEFAULTS.withMemoryLimitBytes(
                                        small.total() + 100_000));
                GptStage stage = factory(offloaded).create(0, RankPlace.single(0), device)) {
            assertThat(stage.memory()).isEqualTo(small);
        }
    }

    @Test
    void aFolderThatCannotBeWrittenIsOneClearError(@TempDir Path folder) throws IOException {
        Path file = Files.writeString(folder.resolve("file"), "no folder");
        Schedule order = order("1f1b", 1, 1, 2, "16");
        GptSettings settings =
                TinyRuns.replicated(
                        settings(TinyRuns.TIED, order, Precision.FLOAT32),
                        1,
                        new ZeroSettings(1, Residency.STEP, 0).offloadedTo(file));
        try (Device device = Devices.open(DeviceSettings.DEFAULTS)) {
            assertThatThrownBy(() -> factory(settings).create(0, RankPlace.single(0), device))
                    .isInstanceOf(DeviceException.class)
                    .hasMessageContaining("parallel.zero.offload")
                    .hasMessageContaining(file.toString());
            assertThat(device.memory().liveBytes()).isZero();
        }
    }

    private static GptStageFactory factory(GptSettings settings) {
        return new GptStageFactory(
                settings,
                Collections.nCopies(
                        settings.partition().stages(), StageBudget.everything(settings.batch())),
                TinyRuns.tokens(settings.shape().vocabulary()),
                ParameterSource.none());
    }

    private record Outcome(
            List<Double> losses,
            Map<String, List<Integer>> gradients,
            Map<String, List<Integer>> state) {}

    private static Outcome run(
            GptSettings settings, Schedule order, int replicas, ZeroSettings zero)
            throws InterruptedException, ExecutionException {
        try (ReplicatedDriver driver = driver(settings, order, replicas, zero)) {
            for (int step = 1; step <= STEPS; step++) {
                driver.train(step, CLIP);
            }
            return new Outcome(driver.losses(), bits(driver.gradients()), bits(driver.state()));
        }
    }

    private static ReplicatedDriver driver(
            GptSettings settings, Schedule order, int replicas, ZeroSettings zero) {
        return new ReplicatedDriver(
                TinyRuns.replicated(settings, replicas, zero), order, TinyRuns.tokens(37));
    }

    private static GptSettings settings(ModelShape shape, Schedule order, Precision precision) {
        PipelineShape s = order.shape();
        return TinyRuns.settings(
                shape,
                s.stages(),
                new BatchShape(2, s.microBatches(), s.sliceLengths(), 4),
                precision);
    }

    private static Schedule order(
            String kind, int ranks, int chunks, int microBatches, String slices) {
        List<Integer> lengths = Arrays.stream(slices.split(" ")).map(Integer::valueOf).toList();
        Schedule order =
                Generators.generate(
                        kind,
                        new PipelineShape(ranks, chunks, microBatches, lengths),
                        GenerateOptions.defaults());
        return order;
    }

    private static Map<String, List<Integer>> bits(Map<String, float[]> tensors) {
        Map<String, List<Integer>> bits = new TreeMap<>();
        tensors.forEach(
                (name, values) -> {
                    Integer[] all = new Integer[values.length];
                    for (int i = 0; i < values.length; i++) {
                        all[i] = Float.floatToRawIntBits(values[i]);
                    }
                    bits.put(name, List.of(all));
                });
        return bits;
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
