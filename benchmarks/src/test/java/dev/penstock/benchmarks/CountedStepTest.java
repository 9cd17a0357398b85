package dev.penstock.benchmarks;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.withinPercentage;

import dev.penstock.benchmarks.roofline.ModelStep;
import dev.penstock.benchmarks.roofline.ModelStep.Family;
import dev.penstock.benchmarks.roofline.ModelStep.Model;
import dev.penstock.benchmarks.roofline.Work;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.EmulatedGpus;
import dev.penstock.cuda.EmulatedGpus.Count;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Gemm;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.Orders;
import dev.penstock.runtime.model.PipelineDriver;
import dev.penstock.runtime.model.TinyRuns;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.BlockDesign;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.HeadDesign;
import dev.penstock.runtime.model.shape.LogitsRoom;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.NormDesign;
import dev.penstock.runtime.model.shape.Positions;
import dev.penstock.runtime.model.shape.Precision;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.TreeSet;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The model of a step against what the emulator counts in one, kernel by kernel. */
class CountedStepTest {
    /** The emulator counts whole words: the last half of an odd row is one. */
    private static final double OF_WORDS = 0.01;

    /** The model has as many different tokens as are likely. */
    private static final double OF_TOKENS = 0.05;

    private static final Set<String> OF_TABLES =
            Set.of("embedding", "embeddingBackward", "countTokens", "listPositions");

    private static final DeviceSettings ON_GPU =
            DeviceSettings.DEFAULTS.withKind(Kind.CUDA).withGemm(Gemm.CUBLAS);

    @BeforeAll
    static void gpus() {
        EmulatedGpus.requireEmulated();
    }

    @AfterEach
    void othersAgain() {
        EmulatedGpus.checkNoMore();
        System.clearProperty("penstock.cublaslt");
    }

    /**
     * A vocabulary that is no multiple of 8, logits for two blocks of a sequence at a time, two
     * tiles of keys; products with and without what follows them.
     */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void inBf16AStepDoesWhatTheModelSays(boolean joined) {
        int vocabulary = joined ? 1_030 : 1_031; // of odd rows of bf16 the emulator counts too much
        long logits = 4L * vocabulary * 40;
        expectCounts(
                new ModelStep(
                        Model.gpt2(1, 64, 1, 80, vocabulary), 1, 2, 16, logits, true, joined));
    }

    /** Logits for one of the two sequences at a time. */
    @Test
    void inF32AStepDoesWhatTheModelSays() {
        Model model = Model.gpt2(2, 64, 1, 20, 67);
        expectCounts(new ModelStep(model, 2, 2, 8, 4L * 67 * 30, false, false));
    }

    /** As in a step of 16 sequences of 124M, where there are 128 blocks of rows. */
    @Test
    void withManyBlocksNormsHaveOneKernelForBothGradients() {
        Model model = Model.gpt2(1, 64, 1, 8, 40);
        ModelStep step = new ModelStep(model, 16, 1, 2, 1 << 20, true, false);

        assertThat(step.works())
                .extracting(Work::kernel)
                .contains("layerNormBackward768")
                .doesNotContain("layerNormBackwardInput");
        expectCounts(step);
    }

    /** Pairs of heads that share keys; the head's own matrix in bf16, the table's in F32. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aStepOfTheLlamaFamilyDoesWhatTheModelSays(boolean bf16) {
        Model model = new Model(Family.LLAMA, 1, 64, 4, 2, 96, 40, 512, !bf16);
        expectCounts(new ModelStep(model, 1, 1, 16, 1 << 20, bf16, bf16));
    }

    /** Norms of 769 to 1,024 columns, which steps on the emulator are too small for. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void theOnePassOfWideNormsMovesWhatTheModelSays(boolean halves) {
        int rows = 64;
        int columns = 960;
        String kernel = "layerNormBackward1024" + (halves ? "OfHalves" : "");
        Model model = Model.gpt2(1, columns, columns / 64, 1, 8);
        Work said =
                new ModelStep(model, rows, 1, 1, 1 << 20, true, halves)
                        .works().stream()
                                .filter(each -> each.kernel().equals(kernel))
                                .findFirst()
                                .orElseThrow();
        Count did = requireNonNull(countedNorm(rows, columns, halves).get(kernel));

        assertThat(did.launches()).isEqualTo(1);
        assertThat((double) did.read())
                .isCloseTo(said.read() / said.launches(), withinPercentage(100 * OF_WORDS));
        assertThat((double) did.written())
                .isCloseTo(said.written() / said.launches(), withinPercentage(100 * OF_WORDS));
    }

    private static Map<String, Count> countedNorm(int rows, int columns, boolean halves) {
        try (Device device = Devices.open(ON_GPU)) {
            DeviceScope scope = device.memory();
            Tensor dy = scope.tensor("dy", halves ? DType.BF16 : DType.F32, rows, columns);
            Tensor x = scope.tensor("x", DType.F32, rows, columns);
            Tensor dx = scope.tensor("dx", DType.F32, rows, columns);
            Tensor gain = scope.tensor("gain", DType.F32, 1, columns);
            Tensor dGain = scope.tensor("dGain", DType.F32, 1, columns);
            Tensor dBias = scope.tensor("dBias", DType.F32, 1, columns);
            Tensor mean = scope.tensor("mean", DType.F32, 1, rows);
            Tensor rstd = scope.tensor("rstd", DType.F32, 1, rows);
            List.of(dy, x, dx, gain, dGain, dBias, mean, rstd).forEach(device.kernels()::zero);
            EmulatedGpus.check();
            EmulatedGpus.counted();
            device.kernels()
                    .layerNormBackward(
                            dy,
                            x,
                            gain,
                            mean,
                            rstd,
                            dx,
                            dGain,
                            dBias,
                            new TokenBlocks(rows, 1, 0, 1));
            device.kernels().finish();
            return EmulatedGpus.counted();
        }
    }

    private static void expectCounts(ModelStep step) {
        Map<String, Work> model = new TreeMap<>();
        step.works().forEach(each -> model.merge(counts(each.kernel()), each, Work::plus));
        Map<String, Count> counted = counted(step);

        List<String> table = new ArrayList<>();
        List<String> wrong = new ArrayList<>();
        Set<String> kernels = new TreeSet<>(model.keySet());
        kernels.addAll(counted.keySet());
        for (String kernel : kernels) {
            Work said =
                    model.getOrDefault(kernel, new Work(kernel, Work.Kind.ELEMENTS, 0, 0, 0, 0));
            Count did = counted.getOrDefault(kernel, new Count(0, 0, 0, 0));
            table.add(row(said, did));
            if (!agree(said, did)) {
                wrong.add(kernel);
            }
        }
        assertThat(wrong)
                .as(
                        "launches, bytes read, written, operations: model | counted%n%s",
                        String.join("\n", table))
                .isEmpty();
    }

    /** The emulator's name for it. */
    private static String counts(String kernel) {
        return kernel.startsWith("product with") ? "product" : kernel;
    }

    private static String row(Work said, Count did) {
        return String.format(
                Locale.ROOT,
                "%-32s %4d %10.0f %10.0f %12.0f | %4d %10d %10d %12.0f",
                said.kernel(),
                said.launches(),
                said.read(),
                said.written(),
                said.operations(),
                did.launches(),
                did.read(),
                did.written(),
                did.operations());
    }

    private static boolean agree(Work said, Count did) {
        double most = OF_TABLES.contains(said.kernel()) ? OF_TOKENS : OF_WORDS;
        return said.launches() == did.launches()
                && near(said.read(), did.read(), most)
                && near(said.written(), did.written(), most)
                && near(said.operations(), did.operations(), 0);
    }

    private static boolean near(double said, double did, double most) {
        return Math.abs(said - did) <= most * did;
    }

    /** Counts the second step: the first one clears all gradients, later ones find them cleared. */
    private static Map<String, Count> counted(ModelStep step) {
        if (!step.joined()) {
            System.setProperty("penstock.cublaslt", "none");
        }
        Device device = Devices.open(ON_GPU);
        try (PipelineDriver pipeline =
                new PipelineDriver(
                        device,
                        settings(step),
                        Orders.oneForwardOneBackward(1, step.microBatches(), 1),
                        (_, _, microBatch, into) -> {
                            var random = new SplittableRandom(microBatch);
                            for (int i = 0; i < into.length; i++) {
                                into[i] = random.nextInt(step.model().vocabulary());
                            }
                        },
                        TinyRuns.roughWeights())) {
            pipeline.train(1);
            EmulatedGpus.check();
            EmulatedGpus.counted();
            pipeline.train(2);
            return EmulatedGpus.counted();
        }
    }

    private static GptSettings settings(ModelStep step) {
        Model model = step.model();
        var batch =
                new BatchShape(
                        step.sequences(),
                        step.microBatches(),
                        List.of(model.context()),
                        step.block(),
                        new LogitsRoom(step.logitsBytes(), false));
        return TinyRuns.settings(
                shape(model), 1, batch, step.bf16() ? Precision.BF16_KEPT : Precision.FLOAT32);
    }

    private static ModelShape shape(Model model) {
        return switch (model.family()) {
            case GPT2 ->
                    ModelShape.gpt2(
                            model.vocabulary(),
                            model.context(),
                            model.width(),
                            model.layers(),
                            model.heads(),
                            model.tied());
            case LLAMA ->
                    new ModelShape(
                            model.vocabulary(),
                            model.context(),
                            model.width(),
                            model.layers(),
                            new BlockDesign(
                                    new NormDesign(NormDesign.Kind.RMS, 1e-5),
                                    new HeadDesign(
                                            model.heads(), model.keyHeads(), 64, false, false),
                                    BlockDesign.Biases.NONE,
                                    BlockDesign.Activation.SWIGLU,
                                    model.hidden(),
                                    List.of()),
                            new Positions.Rotary(model.context(), 10_000, Optional.empty()),
                            model.tied());
        };
    }
}
