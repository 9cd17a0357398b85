package dev.penstock.runtime.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.actors.collective.CollectiveForm;
import dev.penstock.actors.collective.GroupRole;
import dev.penstock.actors.collective.OpenGroup;
import dev.penstock.actors.collective.RankWaits;
import dev.penstock.actors.collective.SoloGroup;
import dev.penstock.actors.collective.shared.CollectiveRegistry;
import dev.penstock.actors.dataplane.ChannelCodecs;
import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.StageGroups;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.model.layers.RingBuffers;
import dev.penstock.runtime.model.memory.CountingScope;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.ShardShape;
import dev.penstock.runtime.model.shape.StageBudget;
import dev.penstock.runtime.model.stage.ActivationTraffic;
import dev.penstock.runtime.model.stage.GptStage;
import dev.penstock.runtime.model.stage.GptStageFactory;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.WorkUnit;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Sequences that are divided among ranks, against one rank that holds them as a whole. */
@Timeout(60)
final class ContextPartsTest {
    private static final BatchShape WHOLE = TinyRuns.batch(List.of(16));
    private static final BatchShape SLICED = TinyRuns.batch(List.of(8, 4, 4));
    private static final RankWaits PATIENT =
            new RankWaits() {
                @Override
                public boolean isCalledOff() {
                    return false;
                }

                @Override
                public void waitsFor(String what) {}

                @Override
                public void goesOn() {}
            };

    /** What a part, or a whole run, came to. */
    private record Result(double loss, Map<String, float[]> gradients, long sentBytes) {}

    @ParameterizedTest
    @CsvSource({
        "gpt2, 2, false, false, false",
        "gpt2, 4, false, false, false",
        "gpt2, 8, false, false, false",
        "gpt2, 16, false, false, false",
        "gpt2, 2, true, false, false",
        "gpt2, 4, false, true, false",
        "gpt2, 2, false, false, true",
        "gpt2, 4, false, false, true",
        "gpt2, 4, true, false, true",
        "gpt2, 2, false, true, true",
        "retnet, 2, false, false, false",
        "retnet, 16, false, true, false", // a part has one token
        "retnet, 4, true, false, true",
        "retnet-mixed, 4, true, true, false",
        "retnet-mixed, 2, false, true, true"
    })
    void lossAndGradientsAreThoseOfOneRank(
            String model, int parts, boolean recompute, boolean split, boolean sliced)
            throws Exception {
        Result one = run(settings(model, WHOLE, 1, recompute), split).getFirst();

        List<Result> all = run(settings(model, sliced ? SLICED : WHOLE, parts, recompute), split);

        double loss = all.stream().mapToDouble(Result::loss).average().orElseThrow();
        assertThat(loss).isCloseTo(one.loss(), within(1e-6 * one.loss()));
        assertThat(one.gradients()).containsKeys("wte", "h.0", "ln_f");
        if (model.equals("gpt2")) {
            assertThat(one.gradients()).containsKey("wpe");
        }
        one.gradients()
                .forEach(
                        (name, expected) -> {
                            double largest = 0;
                            double apart = 0;
                            for (int i = 0; i < expected.length; i++) {
                                double sum = 0;
                                for (Result part : all) {
                                    sum += Objects.requireNonNull(part.gradients().get(name))[i];
                                }
                                largest = Math.max(largest, Math.abs(expected[i]));
                                apart = Math.max(apart, Math.abs(sum - expected[i]));
                            }
                            assertThat(apart).as(name).isLessThan(1e-5 * largest);
                        });
    }

    @ParameterizedTest
    @CsvSource({
        "gpt2, 4, false, false",
        "gpt2, 2, true, false",
        "gpt2, 4, false, true",
        "gpt2, 2, true, true",
        "retnet, 4, false, true",
        "retnet-mixed, 2, true, false"
    })
    void sentIsWhatIsPredicted(String model, int parts, boolean recompute, boolean split)
            throws Exception {
        for (BatchShape batch : List.of(WHOLE, SLICED)) {
            GptSettings settings = settings(model, batch, parts, recompute);
            long predicted =
                    new ActivationTraffic(
                                    settings,
                                    new RankPlace(0, 0, 0, 0),
                                    ops(batch, split),
                                    CollectiveForm.NEVER,
                                    ChannelCodecs.NONE)
                            .ring();

            List<Result> all = run(settings, split);

            assertThat(all).extracting(Result::sentBytes).containsOnly(predicted);
        }
    }

    @Test
    void everyPartSendsKeysAndValuesOfAllButOneTwiceAndTheirGradientsOnce() {
        long ofPart = 2L * 2 * TinyRuns.TIED.width() * Float.BYTES * (16 / 4);

        long sent =
                new ActivationTraffic(
                                settings("gpt2", WHOLE, 4, false),
                                new RankPlace(0, 0, 0, 0),
                                ops(WHOLE, false),
                                CollectiveForm.NEVER,
                                ChannelCodecs.NONE)
                        .ring();

        assertThat(sent).isEqualTo(9 * ofPart * WHOLE.microBatches() * TinyRuns.TIED.layers());
    }

    /** Two runs of tokens of each sequence, whatever their lengths. */
    @Test
    void everyPartSendsWhatItsRunsAddToStatesAndTheirGradientsToAll() {
        GptSettings settings = settings("retnet", WHOLE, 4, false);
        ModelShape shape = settings.shape();
        long state = 2L * shape.width() * shape.width() / shape.block().heads().queries();

        long sent =
                new ActivationTraffic(
                                settings,
                                new RankPlace(0, 0, 0, 0),
                                ops(WHOLE, false),
                                CollectiveForm.NEVER,
                                ChannelCodecs.NONE)
                        .ring();

        long each = 2 * 2 * 3 * state * Float.BYTES;
        assertThat(sent).isEqualTo(2 * each * WHOLE.microBatches() * shape.layers());
    }

    @ParameterizedTest
    @ValueSource(strings = {"gpt2", "retnet-mixed"})
    void bitsAreTheSameWheneverOthersCome(String model) throws Exception {
        GptSettings settings = settings(model, SLICED, 4, false);
        List<Result> first = run(settings, false);

        for (int i = 0; i < 5; i++) {
            assertThat(run(settings, false)).usingRecursiveComparison().isEqualTo(first);
        }
    }

    /** Beside the blocks that move, a part's memory is that of its tokens. */
    @Test
    void noPartHoldsMoreThanTwoBlocksOfOthersAndTheirGradients() {
        ModelShape shape = TinyRuns.TIED;
        for (int parts : List.of(2, 4, 8)) {
            var scope = new CountingScope("ring");
            GptSettings settings = settings("gpt2", WHOLE, parts, false);

            RingBuffers.allocate(scope, ShardShape.whole(shape), settings.batchOfPart(), parts);

            long ofPart = 2L * 2 * shape.width() * Float.BYTES * 16 / parts;
            assertThat(scope.liveBytes()).isEqualTo((parts == 2 ? 4 : 5) * ofPart);
        }
    }

    @Test
    void partsThatDoNotDivideEverySliceAreRefused() {
        assertThatThrownBy(() -> settings("gpt2", TinyRuns.batch(List.of(10, 6)), 4, false))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage(
                        "context parts hold equal numbers of a slice's tokens: expected slices of"
                                + " multiples of 4 tokens, got [10, 6]");
    }

    private static GptSettings settings(
            String model, BatchShape batch, int parts, boolean recompute) {
        ModelShape shape = model.equals("gpt2") ? TinyRuns.TIED : new GoldenFamily(model).shape();
        GptSettings s = TinyRuns.settings(shape, 1, batch);
        return TinyRuns.recomputing(s, recompute ? Set.of(0, 2) : Set.of())
                .onGrid(new RankGrid(1, 1, parts, 1), s.zero());
    }

    /** One stage on every part, each on a thread and a device of its own. */
    private static List<Result> run(GptSettings settings, boolean split) throws Exception {
        int parts = settings.grid().context();
        var registry = new CollectiveRegistry();
        try (ExecutorService threads = Executors.newFixedThreadPool(parts)) {
            List<Future<Result>> running = new ArrayList<>();
            for (int part = 0; part < parts; part++) {
                int own = part;
                running.add(threads.submit(() -> step(settings, own, registry, split)));
            }
            List<Result> results = new ArrayList<>();
            for (Future<Result> each : running) {
                results.add(each.get(40, TimeUnit.SECONDS));
            }
            return results;
        }
    }

    private static Result step(
            GptSettings settings, int part, CollectiveRegistry registry, boolean split) {
        BatchShape batch = settings.batchOfPart();
        var everything = StageBudget.everything(batch);
        var budget =
                new StageBudget(
                        everything.units(),
                        everything.unitsPerSlice(),
                        everything.microBatches(),
                        everything.backwardMicroBatches(),
                        split ? everything.units() : 0);
        var factory =
                new GptStageFactory(
                        settings,
                        List.of(budget),
                        TinyRuns.tokens(settings.shape().vocabulary()),
                        TinyRuns.roughWeights());
        var reference = DeviceSettings.DEFAULTS.withKind(DeviceSettings.Kind.REFERENCE);
        try (Device device = Devices.open(reference);
                GptStage stage = factory.create(0, new RankPlace(0, 0, part, 0), device)) {
            if (settings.grid().context() == 1) {
                stage.connect(StageGroups.ALONE);
                return step(stage, batch, 0, split);
            }
            try (OpenGroup group = join(settings.grid().context(), part, registry, device)) {
                stage.connect(new StageGroups(SoloGroup.GROUP, group, group));
                Result result = step(stage, batch, 0, split);
                return new Result(result.loss(), result.gradients(), group.sentBytes());
            }
        }
    }

    private static OpenGroup join(int parts, int part, CollectiveRegistry registry, Device device) {
        return registry.join(
                1,
                GroupRole.CONTEXT,
                IntStream.range(0, parts).boxed().toList(),
                part,
                device.kernels(),
                Duration.ofSeconds(30),
                PATIENT);
    }

    /** All forwards, then all backwards, slices in reverse. */
    private static List<Op> ops(BatchShape batch, boolean split) {
        List<Op> ops = new ArrayList<>();
        List<Op> weights = new ArrayList<>();
        for (int m = 0; m < batch.microBatches(); m++) {
            for (int s = 0; s < batch.slices(); s++) {
                ops.add(new Op.Forward(new WorkUnit(0, m, s)));
            }
        }
        for (int m = 0; m < batch.microBatches(); m++) {
            for (int s = batch.slices() - 1; s >= 0; s--) {
                var unit = new WorkUnit(0, m, s);
                ops.add(split ? new Op.BackwardInput(unit) : new Op.Backward(unit));
                if (split) {
                    weights.add(new Op.BackwardWeight(unit));
                }
            }
        }
        ops.addAll(weights);
        return ops;
    }

    private static Result step(GptStage stage, BatchShape batch, long sent, boolean split) {
        stage.beginStep(StepKind.TRAIN, 1);
        for (Op op : ops(batch, split)) {
            switch (op) {
                case Op.Forward(WorkUnit unit) -> stage.forward(unit, null, null);
                case Op.Backward(WorkUnit unit) -> stage.backward(unit, null, null, null);
                case Op.BackwardInput(WorkUnit unit) -> stage.backwardInput(unit, null, null, null);
                case Op.BackwardWeight(WorkUnit unit) -> stage.backwardWeight(unit);
                default -> throw new AssertionError(op);
            }
        }
        double loss = stage.finishStep().loss().orElseThrow();
        Map<String, float[]> gradients = new TreeMap<>();
        for (NamedTensor each : stage.trained().gradients()) {
            gradients.put(each.name(), each.tensor().contents().toArray(ValueLayout.JAVA_FLOAT));
        }
        return new Result(loss, gradients, sent);
    }
}
