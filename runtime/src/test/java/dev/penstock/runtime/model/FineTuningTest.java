package dev.penstock.runtime.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.kernels.BFloat16;
import dev.penstock.cuda.kernels.Int8;
import dev.penstock.runtime.data.BatchSource;
import dev.penstock.runtime.model.family.AdapterParts;
import dev.penstock.runtime.model.family.Families;
import dev.penstock.runtime.model.family.Family;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.Adapters;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.FineTuning;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.Precision;
import dev.penstock.runtime.model.shape.StageBudget;
import dev.penstock.runtime.model.shape.StageMemory;
import dev.penstock.runtime.model.stage.GptStageFactory;
import dev.penstock.schedules.ir.Schedule;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.IntBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What is trained does not depend on the layout, and what is not costs and changes nothing. */
class FineTuningTest {
    private static final int MICRO_BATCHES = 2;
    private static final List<Integer> WHOLE = List.of(64);

    static Stream<Arguments> familiesAndPrecisions() {
        return Stream.of("llama", "qwen3", "gpt2-variants")
                .flatMap(
                        family ->
                                TinyRuns.ON_CPUS.stream()
                                        .map(precision -> Arguments.of(family, precision)));
    }

    static Stream<Arguments> familiesPrecisionsAndDropouts() {
        return Stream.concat(
                familiesAndPrecisions().map(each -> Arguments.of(each.get()[0], each.get()[1], 0)),
                familiesAndPrecisions()
                        .map(each -> Arguments.of(each.get()[0], each.get()[1], 0.2)));
    }

    /** The same with dropout. */
    private static FineTuning dropping(FineTuning tuning, double dropout) {
        return new FineTuning(
                tuning.adapters().map(adapters -> adapters.dropping(dropout)), tuning.freeze());
    }

    private static FineTuning lora(String golden, ModelShape shape) {
        Family family = new GoldenFamily(golden).config().family();
        return new FineTuning(
                Optional.of(
                        new Adapters(
                                3, 6, AdapterParts.places(family, shape, List.of("all-linear")))),
                List.of("h.1.*"));
    }

    @ParameterizedTest(name = "{0}, {1}, dropout {2}")
    @MethodSource("familiesPrecisionsAndDropouts")
    void stagesSlicesOrdersAndRecomputationDoNotChangeABitOfAdapters(
            String family, Precision precision, double dropout) {
        ModelShape shape = TinyFamilies.shape(family);
        sameInEveryLayout(shape, dropping(lora(family, shape), dropout), precision);
    }

    @ParameterizedTest
    @ValueSource(strings = {"llama", "qwen3", "gpt2-variants"})
    void norOfAdaptersBesideIntegers(String family) {
        ModelShape shape = TinyFamilies.shape(family);
        FineTuning tuning = lora(family, shape).keeping(FineTuning.Frozen.INT8);
        sameInEveryLayout(shape, tuning, Precision.FLOAT32);
    }

    private static void sameInEveryLayout(
            ModelShape shape, FineTuning tuning, Precision precision) {
        Schedule one = Orders.oneForwardOneBackward(1, MICRO_BATCHES, 1);
        Map<String, Object> bits = run(shape, tuning, precision, 1, WHOLE, one, Set.of());

        assertThat(bits.keySet()).anyMatch(name -> name.startsWith("g h.0.mlp.c_fc."));
        assertThat(bits.keySet()).noneMatch(name -> name.startsWith("g h.1."));
        List<Integer> halves = List.of(32, 32);
        Schedule two = Orders.oneForwardOneBackward(2, MICRO_BATCHES, 2);
        assertThat(run(shape, tuning, precision, 2, halves, two, Set.of())).isEqualTo(bits);
        assertThat(run(shape, tuning, precision, 2, halves, Orders.split(two, 1), Set.of()))
                .isEqualTo(bits);
        assertThat(run(shape, tuning, precision, 2, halves, two, Set.of(0, 1))).isEqualTo(bits);
        Schedule sliced = Orders.gpipe(2, MICRO_BATCHES, 3);
        assertThat(run(shape, tuning, precision, 2, List.of(32, 16, 16), sliced, Set.of()))
                .isEqualTo(bits);
    }

    @ParameterizedTest(name = "{0}, {1}")
    @MethodSource("familiesAndPrecisions")
    void gradientsOfTheRestAreThoseOfAFullRun(String family, Precision precision) {
        ModelShape shape = TinyFamilies.shape(family);
        var tuning = new FineTuning(Optional.empty(), List.of("w*", "h.0.*", "*.ln_2.*"));
        Schedule order = Orders.oneForwardOneBackward(2, MICRO_BATCHES, 1);
        Map<String, Object> full =
                run(shape, FineTuning.FULL, precision, 2, WHOLE, order, Set.of());

        Map<String, Object> partly = run(shape, tuning, precision, 2, WHOLE, order, Set.of());
        Map<String, Object> alone =
                run(
                        shape,
                        tuning,
                        precision,
                        1,
                        List.of(32, 32),
                        Orders.oneForwardOneBackward(1, MICRO_BATCHES, 2),
                        Set.of());

        assertThat(alone).isEqualTo(partly);
        assertThat(partly.get("loss 1")).isEqualTo(full.get("loss 1"));
        partly.forEach(
                (name, bits) -> {
                    if (name.startsWith("g ")) {
                        assertThat(tuning.trains(name.substring(2))).as(name).isTrue();
                        assertThat(bits).as(name).isEqualTo(full.get(name));
                    }
                });
        assertThat(partly)
                .containsKey("g h.1.attn.c_attn.weight")
                .doesNotContainKey("g wte.weight");
        assertThat(partly).doesNotContainKey("optimizer.m.h.0.attn.c_attn.weight");
    }

    /** Everything that two steps yield, as bits; the gradients are those of the first. */
    private static Map<String, Object> run(
            ModelShape shape,
            FineTuning tuning,
            Precision precision,
            int stages,
            List<Integer> slices,
            Schedule order,
            Set<Integer> recomputed) {
        var batch = new BatchShape(2, MICRO_BATCHES, slices, 16);
        GptSettings settings =
                TinyRuns.recomputing(
                        TinyRuns.settings(shape, stages, batch, precision).training(tuning),
                        recomputed);
        DeviceSettings cpu =
                DeviceSettings.DEFAULTS.withKind(DeviceSettings.Kind.CPU).withThreads(1);
        try (var pipeline =
                new PipelineDriver(
                                Devices.open(cpu),
                                settings,
                                order,
                                TinyRuns.tokens(shape.vocabulary()),
                                TinyRuns.roughWeights())
                        .clippingTo(1)) {
            Map<String, Object> outcome = new TreeMap<>();
            Map<String, float[]> before = pipeline.state();
            outcome.put("loss 1", pipeline.train(1));
            outcome.put("norm 1", pipeline.gradientNorm());
            pipeline.gradients().forEach((name, g) -> outcome.put("g " + name, bits(g)));
            outcome.put("loss 2", pipeline.train(2));
            pipeline.state()
                    .forEach(
                            (name, values) -> {
                                outcome.put(name, bits(values));
                                boolean weight = !name.startsWith("optimizer.");
                                if (weight && !tuning.trains(name)) {
                                    assertThat(values).as(name).isEqualTo(before.get(name));
                                }
                            });
            outcome.put("evaluated", pipeline.evaluate(0));
            return outcome;
        }
    }

    /** Compared by content. */
    private static IntBuffer bits(float[] values) {
        int[] bits = new int[values.length];
        Arrays.setAll(bits, i -> Float.floatToRawIntBits(values[i]));
        return IntBuffer.wrap(bits);
    }

    @Test
    void dropoutIsOfTrainingAloneAndEveryStepHasItsOwn() {
        ModelShape shape = TinyFamilies.shape("llama");
        Schedule order = Orders.oneForwardOneBackward(1, 1, 1);
        BatchSource tokens = TinyRuns.tokens(101);
        BatchSource same = (kind, _, _, into) -> tokens.read(kind, 1, 0, into);
        FineTuning plain = lora("llama", shape);
        GptSettings settings = TinyRuns.settings(shape, 1, new BatchShape(1, 1, WHOLE, 16));
        ParameterSource rough = TinyRuns.roughWeights();
        try (var without = new PipelineDriver(settings.training(plain), order, same, rough);
                var with =
                        new PipelineDriver(
                                settings.training(dropping(plain, 0.5)), order, same, rough);
                var later =
                        new PipelineDriver(
                                settings.training(dropping(plain, 0.5)), order, same, rough)) {

            assertThat(with.evaluate(0)).isEqualTo(without.evaluate(0));
            double first = with.train(1);
            assertThat(Math.abs(first - without.train(1))).isGreaterThan(1e-3);
            assertThat(Math.abs(first - later.train(2))).isGreaterThan(1e-3);
        }
    }

    /** The masks are those of the tokens, whoever has them: what differs is the order of sums. */
    @ParameterizedTest(
            name = "{0}: {1} stages, {2} shards, {3} parts, {4} replicas, rows divided {5}")
    @CsvSource({
        "llama, 1, 2, 1, 1, false",
        "llama, 1, 2, 1, 1, true",
        "gpt2-variants, 1, 2, 1, 1, true",
        "llama, 1, 1, 2, 1, false",
        "gpt2-variants, 2, 1, 1, 2, false",
        "llama, 1, 2, 2, 2, true",
    })
    void dropoutIsTheSameOnAnyGrid(
            String family, int stages, int shards, int parts, int replicas, boolean sequence)
            throws Exception {
        ModelShape shape = TinyFamilies.shape(family);
        FineTuning tuning = dropping(lora(family, shape), 0.3);
        GptSettings whole =
                TinyRuns.settings(shape, 1, new BatchShape(2, MICRO_BATCHES, WHOLE, 16));
        Schedule alone = Orders.oneForwardOneBackward(1, MICRO_BATCHES, 1);
        int each = MICRO_BATCHES / replicas;
        GptSettings divided =
                TinyRuns.settings(shape, stages, new BatchShape(2, each, WHOLE, 16))
                        .training(tuning)
                        .onGrid(new RankGrid(stages, shards, parts, replicas), whole.zero());
        GptSettings settings = sequence ? TinyRuns.sequenceParallel(divided) : divided;
        double plain;
        try (var one =
                new PipelineDriver(
                        whole.training(lora(family, shape)),
                        alone,
                        TinyRuns.tokens(101),
                        TinyRuns.roughWeights())) {
            plain = one.train(1);
        }
        try (var one =
                        new PipelineDriver(
                                whole.training(tuning),
                                alone,
                                TinyRuns.tokens(101),
                                TinyRuns.roughWeights());
                var all =
                        new GridDriver(
                                settings,
                                Orders.oneForwardOneBackward(stages, each, 1),
                                TinyRuns.tokens(101),
                                TinyRuns.roughWeights())) {
            double first = one.train(1);
            assertThat(Math.abs(first - plain)).isGreaterThan(1e-3);
            assertThat(all.train(1)).isCloseTo(first, within(1e-5));
            assertThat(all.train(2)).isCloseTo(one.train(2), within(1e-5));
            assertNear(all.gradients(), one.gradients());
        }
    }

    /** Every linear layer has an adapter; shards change only the order of sums. */
    @ParameterizedTest(name = "{0}, rows divided {1}")
    @CsvSource({"llama, false", "llama, true", "gpt2-variants, false", "gpt2-variants, true"})
    void tensorShardsOfAdaptersAreTheSameUpToTheOrderOfSums(String family, boolean sequence)
            throws Exception {
        ModelShape shape = TinyFamilies.shape(family);
        GptSettings whole =
                TinyRuns.settings(shape, 1, new BatchShape(2, MICRO_BATCHES, WHOLE, 16))
                        .training(
                                new FineTuning(
                                        lora(family, shape).adapters(), List.of("*.c_proj.*A*")));
        Schedule order = Orders.oneForwardOneBackward(1, MICRO_BATCHES, 1);
        Map<String, float[]> wanted;
        double loss;
        try (var one =
                new PipelineDriver(whole, order, TinyRuns.tokens(101), TinyRuns.roughWeights())) {
            one.train(1);
            loss = one.train(2);
            wanted = one.gradients();
        }
        GptSettings sharded = TinyRuns.sharded(whole, 2);
        GptSettings settings = sequence ? TinyRuns.sequenceParallel(sharded) : sharded;

        try (var both =
                new GridDriver(settings, order, TinyRuns.tokens(101), TinyRuns.roughWeights())) {
            both.train(1);
            assertThat(both.train(2)).isCloseTo(loss, within(1e-5));
            assertNear(both.gradients(), wanted);
        }
    }

    private static void assertNear(Map<String, float[]> found, Map<String, float[]> wanted) {
        assertThat(found.keySet()).isEqualTo(new TreeMap<>(wanted).keySet());
        wanted.forEach(
                (name, values) -> {
                    float[] own = Objects.requireNonNull(found.get(name));
                    double apart = 0;
                    double size = 0;
                    for (int i = 0; i < values.length; i++) {
                        apart += Math.pow(own[i] - values[i], 2);
                        size += Math.pow(values[i], 2);
                    }
                    assertThat(Math.sqrt(apart)).as(name).isLessThan(1e-4 * Math.sqrt(size) + 1e-7);
                });
    }

    /** As PEFT begins: the branch adds nothing, since its outer matrix is zero. */
    @Test
    void newAdaptersDoNotChangeTheModel() {
        ModelShape shape = TinyFamilies.shape("llama");
        ParameterSource base =
                (name, piece, into) ->
                        !FineTuning.isAdapter(name)
                                && TinyRuns.roughWeights().fill(name, piece, into);
        Schedule order = Orders.oneForwardOneBackward(1, MICRO_BATCHES, 1);
        double[] losses = new double[2];
        List<FineTuning> both = List.of(FineTuning.FULL, lora("llama", shape));
        for (int i = 0; i < 2; i++) {
            GptSettings settings =
                    TinyRuns.settings(shape, 1, new BatchShape(2, MICRO_BATCHES, WHOLE, 16))
                            .training(both.get(i));
            try (var pipeline = new PipelineDriver(settings, order, TinyRuns.tokens(101), base)) {
                losses[i] = pipeline.evaluate(0);
                float[] a = pipeline.state().get("h.0.mlp.c_fc.up_proj.lora_A.weight");
                if (a != null) {
                    float most = 0;
                    for (float value : a) {
                        most = Math.max(most, Math.abs(value));
                    }
                    assertThat(most).isBetween(0.1f, 0.125f); // 1 / sqrt(64)
                    assertThat(pipeline.state().get("h.0.mlp.c_fc.up_proj.lora_B.weight"))
                            .containsOnly(0);
                }
            }
        }
        assertThat(losses[1]).isEqualTo(losses[0]);
    }

    @Test
    void whatIsFrozenHasNeitherGradientsNorMoments() {
        ModelShape shape = ModelShape.gpt2(101, 64, 64, 2, 4, true);
        GptSettings full = TinyRuns.settings(shape, 1, new BatchShape(2, 2, WHOLE, 16));
        Adapters adapters =
                new Adapters(4, 8, AdapterParts.places(Families.GPT2, shape, List.of("c_attn")));
        StageMemory everything = memory(full);

        StageMemory tuned = memory(full.training(new FineTuning(Optional.of(adapters), List.of())));
        StageMemory none =
                memory(full.training(new FineTuning(Optional.empty(), List.of("h.*", "w*"))));

        long trained = 2L * (64 * 4 + 4 * 3 * 64) * Float.BYTES;
        assertThat(tuned.gradients()).isEqualTo(trained);
        assertThat(tuned.optimizer()).isEqualTo(2 * trained);
        assertThat(tuned.parameters()).isEqualTo(everything.parameters() + trained);
        assertThat(none.gradients()).isEqualTo(2L * 64 * Float.BYTES);
        assertThat(none.optimizer()).isEqualTo(4L * 64 * Float.BYTES);
    }

    @Test
    void frozenMatricesInBf16HaveNoMasters() {
        ModelShape shape = ModelShape.gpt2(101, 64, 64, 2, 4, true);
        var tuning =
                new FineTuning(
                        Optional.of(
                                new Adapters(
                                        4,
                                        8,
                                        AdapterParts.places(
                                                Families.GPT2, shape, List.of("c_attn")))),
                        List.of());
        long blocks = 2L * 12 * 64 * 64;
        var batch = new BatchShape(2, 2, WHOLE, 16);

        for (Precision precision : List.of(Precision.FLOAT32, Precision.BF16)) {
            GptSettings settings = TinyRuns.settings(shape, 1, batch, precision);
            long masters =
                    memory(settings.training(tuning.keeping(FineTuning.Frozen.FLOAT32)))
                            .parameters();
            long halves =
                    memory(settings.training(tuning.keeping(FineTuning.Frozen.BF16))).parameters();
            long own = memory(settings.training(tuning)).parameters();

            boolean rounds = precision.copiesWeights();
            assertThat(masters - halves).isEqualTo(blocks * (rounds ? 4 : 2));
            assertThat(own).isEqualTo(rounds ? halves : masters);
        }
    }

    /** The bits that products read are the same, whether or not a master lies beside them. */
    @ParameterizedTest
    @ValueSource(strings = {"llama", "gpt2-variants"})
    void masterlessMatricesDoNotChangeABit(String family) {
        ModelShape shape = TinyFamilies.shape(family);
        FineTuning tuning = lora(family, shape);
        Schedule two = Orders.oneForwardOneBackward(2, MICRO_BATCHES, 1);

        Map<String, Object> halves = run(shape, tuning, Precision.BF16, 2, WHOLE, two, Set.of());
        Map<String, Object> masters =
                run(
                        shape,
                        tuning.keeping(FineTuning.Frozen.FLOAT32),
                        Precision.BF16,
                        2,
                        WHOLE,
                        two,
                        Set.of());

        masters.forEach(
                (name, bits) -> {
                    boolean frozen = name.endsWith(".weight") && !tuning.trains(bare(name));
                    if (!frozen) {
                        assertThat(halves.get(name)).as(name).isEqualTo(bits);
                    }
                });
    }

    private static String bare(String name) {
        return name.replaceFirst("^(g |optimizer\\.[mv]\\.)", "");
    }

    /** As a run whose frozen matrices were rounded before it began. */
    @ParameterizedTest
    @ValueSource(strings = {"llama", "gpt2-variants"})
    void productsReadWidenedMatricesInFloat32(String family) {
        ModelShape shape = TinyFamilies.shape(family);
        FineTuning tuning = lora(family, shape);
        ParameterSource rough = TinyRuns.roughWeights();
        ParameterSource rounded =
                (name, piece, into) -> {
                    boolean filled = rough.fill(name, piece, into);
                    boolean matrix = name.startsWith("h.") && piece.whole().size() == 2;
                    for (long i = 0; matrix && !tuning.trains(name) && i < piece.elements(); i++) {
                        float value = into.getAtIndex(ValueLayout.JAVA_FLOAT, i);
                        boolean adapter = FineTuning.isAdapter(name);
                        into.setAtIndex(
                                ValueLayout.JAVA_FLOAT, i, adapter ? value : BFloat16.round(value));
                    }
                    return filled;
                };
        Schedule order = Orders.oneForwardOneBackward(1, MICRO_BATCHES, 1);
        GptSettings settings =
                TinyRuns.settings(shape, 1, new BatchShape(2, MICRO_BATCHES, WHOLE, 16))
                        .training(tuning);
        double[] losses = new double[3];
        Map<String, float[]> gradients;
        try (var plain = new PipelineDriver(settings, order, TinyRuns.tokens(101), rounded)) {
            losses[0] = plain.train(1);
            gradients = plain.gradients();
            losses[1] = plain.train(2);
            losses[2] = plain.evaluate(0);
        }
        GptSettings halves = settings.training(tuning.keeping(FineTuning.Frozen.BF16));

        try (var kept = new PipelineDriver(halves, order, TinyRuns.tokens(101), rough)) {
            assertThat(kept.train(1)).isEqualTo(losses[0]);
            assertThat(kept.gradients().keySet()).isEqualTo(gradients.keySet());
            kept.gradients()
                    .forEach((name, values) -> assertThat(values).isEqualTo(gradients.get(name)));
            assertThat(kept.train(2)).isEqualTo(losses[1]);
            assertThat(kept.evaluate(0)).isEqualTo(losses[2]);
        }
    }

    /** As a run whose frozen matrices and tables were rounded, row by row, before it began. */
    @ParameterizedTest(name = "{0} on {1}")
    @CsvSource({
        "llama, REFERENCE",
        "llama, CPU",
        "qwen3, REFERENCE",
        "gpt2-variants, REFERENCE",
        "gpt2-variants, CPU"
    })
    void productsReadWhatIntegersStandFor(String family, DeviceSettings.Kind kind) {
        ModelShape shape = TinyFamilies.shape(family);
        FineTuning tuning = lora(family, shape);
        ParameterSource rough = TinyRuns.roughWeights();
        ParameterSource rounded =
                (name, piece, into) -> {
                    boolean filled = rough.fill(name, piece, into);
                    boolean matrix = piece.whole().size() == 2 && !name.equals("wpe.weight");
                    if (matrix && !tuning.trains(name) && !FineTuning.isAdapter(name)) {
                        int columns = piece.whole().getLast();
                        for (long at = 0; at < piece.elements(); at += columns) {
                            round(into, at, columns);
                        }
                    }
                    return filled;
                };
        Schedule order = Orders.oneForwardOneBackward(1, MICRO_BATCHES, 1);
        GptSettings settings =
                TinyRuns.settings(shape, 1, new BatchShape(2, MICRO_BATCHES, WHOLE, 16))
                        .training(tuning);
        GptSettings integers = settings.training(tuning.keeping(FineTuning.Frozen.INT8));
        DeviceSettings device = DeviceSettings.DEFAULTS.withKind(kind).withThreads(2);
        double apart = kind == DeviceSettings.Kind.REFERENCE ? 0 : 1e-5;
        try (var plain =
                        new PipelineDriver(
                                Devices.open(device),
                                settings,
                                order,
                                TinyRuns.tokens(101),
                                rounded);
                var kept =
                        new PipelineDriver(
                                Devices.open(device),
                                integers,
                                order,
                                TinyRuns.tokens(101),
                                rough)) {
            for (int step = 1; step <= 2; step++) {
                assertThat(kept.train(step)).isCloseTo(plain.train(step), within(apart));
                assertThat(kept.gradientNorm())
                        .isCloseTo(plain.gradientNorm(), within(apart * plain.gradientNorm()));
            }
            assertThat(kept.evaluate(0)).isCloseTo(plain.evaluate(0), within(apart));
            Map<String, float[]> floats = plain.state();
            kept.state()
                    .forEach(
                            (name, values) -> {
                                if (!tuning.trains(bare(name))) {
                                    assertThat(values).as(name).isEqualTo(floats.get(name));
                                }
                            });
        }
    }

    private static void round(MemorySegment floats, long first, int count) {
        float largest = 0;
        for (long i = first; i < first + count; i++) {
            largest = Math.max(largest, Math.abs(floats.getAtIndex(ValueLayout.JAVA_FLOAT, i)));
        }
        float scale = Int8.scale(largest);
        for (long i = first; i < first + count; i++) {
            float value = floats.getAtIndex(ValueLayout.JAVA_FLOAT, i);
            floats.setAtIndex(ValueLayout.JAVA_FLOAT, i, Int8.of(value, scale) * scale);
        }
    }

    @Test
    void frozenMatricesAndTheTokenTableInIntegersTakeAByteAnElementAndAScaleARow() {
        for (boolean tied : new boolean[] {true, false}) {
            ModelShape shape = ModelShape.gpt2(101, 64, 64, 2, 4, tied);
            var tuning =
                    new FineTuning(
                            Optional.of(
                                    new Adapters(
                                            4,
                                            8,
                                            AdapterParts.places(
                                                    Families.GPT2, shape, List.of("c_attn")))),
                            List.of());
            GptSettings settings =
                    TinyRuns.settings(shape, 1, new BatchShape(2, 2, WHOLE, 16), Precision.FLOAT32);

            StageMemory floats = memory(settings.training(tuning));
            StageMemory integers =
                    memory(settings.training(tuning.keeping(FineTuning.Frozen.INT8)));

            int tables = tied ? 1 : 2;
            long elements = 2L * 12 * 64 * 64 + tables * 101L * 64;
            long rows = 2L * (3 * 64 + 4 * 64) + tables * 101L;
            long padding = tables * 12L; // of 101 rows of 68 bytes to cache lines
            assertThat(floats.parameters() - integers.parameters())
                    .isCloseTo(elements * 3 - rows * 4, within(padding + 64));
            assertThat(floats.total() - integers.total())
                    .isEqualTo(floats.parameters() - integers.parameters());
        }
    }

    private static StageMemory memory(GptSettings settings) {
        var factory =
                new GptStageFactory(
                        settings,
                        List.of(new StageBudget(1, List.of(1), 1, 1, 0)),
                        TinyRuns.tokens(101),
                        ParameterSource.none());
        return factory.predictedMemory(0, new RankPlace(0, 0, 0, 0));
    }
}
