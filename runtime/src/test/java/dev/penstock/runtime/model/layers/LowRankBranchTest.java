package dev.penstock.runtime.model.layers;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.actors.spi.RankPlace;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DropoutMask;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.TinyFamilies;
import dev.penstock.runtime.model.TinyRuns;
import dev.penstock.runtime.model.family.AdapterParts;
import dev.penstock.runtime.model.family.Families;
import dev.penstock.runtime.model.memory.StageScopes;
import dev.penstock.runtime.model.parameters.AdapterParameters;
import dev.penstock.runtime.model.parameters.CounterRandom;
import dev.penstock.runtime.model.parameters.LinearParameters;
import dev.penstock.runtime.model.parameters.ParameterAllocator;
import dev.penstock.runtime.model.parameters.ParameterInit;
import dev.penstock.runtime.model.parameters.StageParameters;
import dev.penstock.runtime.model.shape.Adapters;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.FineTuning;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.Precision;
import dev.penstock.runtime.model.shape.ShardShape;
import dev.penstock.runtime.model.shape.Sharding;
import dev.penstock.runtime.model.shape.StageRole;
import dev.penstock.runtime.model.shape.StepShapes;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Optional;
import java.util.function.DoubleSupplier;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A branch against its definition in double precision, and its gradients against differences. */
class LowRankBranchTest {
    private static final int ROWS = 16;
    private static final int RANK = 3;
    private static final double SCALE = 1.5;
    private static final double STEP = 1e-3;
    private static final RankPlace PLACE = new RankPlace(0, 0, 0, 0);
    private static final long SEED = 17;
    private static final int TRAINING_STEP = 3;
    private static final long FIRST_SEQUENCE = 5;

    /** A linear layer with branches beside some of its columns, in doubles. */
    private static final class Plain {
        private final double[] x;
        private final double[] weight;
        private final List<double[]> inner;
        private final List<double[]> outer;
        private final List<Integer> first;
        private final List<DropoutMask> masks;
        private final int in;
        private final int out;

        Plain(double[] x, LinearParameters layer, double dropout) {
            this.x = x;
            masks =
                    layer.adapters().stream()
                            .map(a -> CounterRandom.of(0, a.inner().name()).bits(0))
                            .map(site -> DropoutMask.scaled(site, 0, dropout))
                            .toList();
            weight = doubles(layer.weight().weight());
            inner = layer.adapters().stream().map(a -> doubles(a.inner().weight())).toList();
            outer = layer.adapters().stream().map(a -> doubles(a.outer().weight())).toList();
            first = layer.adapters().stream().map(AdapterParameters::firstColumn).toList();
            in = layer.weight().weight().rows();
            out = layer.weight().weight().columns();
        }

        double[] output() {
            double[] y = product(x, weight, ROWS, in, out);
            for (int i = 0; i < inner.size(); i++) {
                int columns = outer.get(i).length / RANK;
                double[] t = product(dropped(masks.get(i)), inner.get(i), ROWS, in, RANK);
                double[] added = product(t, outer.get(i), ROWS, RANK, columns);
                for (int n = 0; n < ROWS; n++) {
                    for (int j = 0; j < columns; j++) {
                        y[n * out + first.get(i) + j] += SCALE * added[n * columns + j];
                    }
                }
            }
            return y;
        }

        private double[] dropped(DropoutMask mask) {
            CounterRandom keys = CounterRandom.of(SEED, "dropout in step " + TRAINING_STEP);
            double[] dropped = new double[x.length];
            for (int n = 0; n < ROWS; n++) {
                for (int j = 0; j < in; j++) {
                    long token = FIRST_SEQUENCE * 64L + n;
                    dropped[n * in + j] =
                            mask.keeps(keys.bits(token), j)
                                    ? x[n * in + j] / (1 - mask.probability())
                                    : 0;
                }
            }
            return dropped;
        }

        private static double[] product(double[] a, double[] b, int m, int k, int n) {
            double[] c = new double[m * n];
            for (int i = 0; i < m; i++) {
                for (int l = 0; l < k; l++) {
                    for (int j = 0; j < n; j++) {
                        c[i * n + j] += a[i * k + l] * b[l * n + j];
                    }
                }
            }
            return c;
        }
    }

    @ParameterizedTest
    @CsvSource({"REFERENCE, 0", "CPU, 0", "REFERENCE, 0.3", "CPU, 0.3"})
    void outputsAndGradientsAreThoseOfTheDefinition(DeviceSettings.Kind kind, double dropout) {
        ModelShape shape = TinyFamilies.shape("llama");
        GptSettings settings = TinyRuns.settings(shape, 1, new BatchShape(1, 1, List.of(64), 16));
        var tuning =
                new FineTuning(
                        Optional.of(
                                new Adapters(
                                        RANK,
                                        RANK * SCALE,
                                        AdapterParts.places(
                                                Families.find("llama").orElseThrow(),
                                                shape,
                                                List.of("q_proj", "v_proj")))),
                        List.of());
        Device device = Devices.open(DeviceSettings.DEFAULTS.withKind(kind).withThreads(1));
        try (device;
                StageScopes scopes = StageScopes.of(settings, device.memory(), "layer")) {
            StageRole role = settings.role(0, PLACE);
            StageParameters parameters =
                    StageParameters.allocate(
                            new ParameterAllocator(
                                    scopes,
                                    Precision.FLOAT32,
                                    ParameterAllocator.Use.TRAIN,
                                    Sharding.NONE,
                                    tuning),
                            ShardShape.whole(shape),
                            role);
            new ParameterInit(TinyRuns.roughWeights(), 1, shape.layers())
                    .fill(parameters, device.kernels());
            parameters.gradients().forEach(g -> device.kernels().zero(g.part()));
            DropoutKeys keys =
                    DropoutKeys.allocate(scopes.scratch(), new StepShapes(settings.batch()));
            AdapterDropout drops =
                    AdapterDropout.allocate(
                            scopes.scratch(),
                            keys,
                            settings.batch().largestRows(),
                            parameters.widestAdapterInput(),
                            dropout);
            keys.begin(true);
            keys.draw(SEED, TRAINING_STEP, FIRST_SEQUENCE, settings.tokens(PLACE), 64);
            keys.at(0, 0);
            AdapterRoom room =
                    AdapterRoom.allocate(
                            scopes.scratch(),
                            scopes.tables(),
                            RANK,
                            ROWS,
                            dropout == 0 ? null : drops);
            room.fill(SCALE);
            var compute =
                    new Compute(
                            device.kernels(),
                            DType.F32,
                            DType.F32,
                            new FiniteGuard(device.kernels()),
                            new TensorShards(device.kernels(), ShardShape.whole(shape), null),
                            room,
                            null,
                            null);
            compare(compute, scopes.scratch(), parameters.layers().get(1).queryKeyValue(), dropout);
        }
    }

    private static void compare(
            Compute compute, DeviceScope scope, LinearParameters layer, double dropout) {
        int in = layer.weight().weight().rows();
        int out = layer.weight().weight().columns();
        Tensor x = random(scope, "x", in);
        Tensor dy = random(scope, "dy", out);
        Tensor y = scope.tensor("y", DType.F32, ROWS, out);
        Tensor dx = scope.tensor("dx", DType.F32, ROWS, in);
        var linear = new Linear(compute, layer, true);
        var blocks = new BatchShape(1, 1, List.of(ROWS), 4).blocks(0);

        linear.multiply(x, y);
        linear.backwardInput(dy, dx);
        linear.backwardWeight(x, dy, blocks);
        compute.kernels().finish();

        var plain = new Plain(doubles(x), layer, dropout);
        assertNear(doubles(y), plain.output(), 1e-5);
        double[] weights = doubles(dy);
        DoubleSupplier loss = () -> dot(plain.output(), weights);
        assertThat(layer.weight().isTrained()).isFalse();
        assertNear(doubles(dx), differences(plain.x, loss), 1e-4);
        for (int i = 0; i < 2; i++) {
            AdapterParameters adapter = layer.adapters().get(i);
            assertNear(
                    doubles(adapter.inner().gradient()),
                    differences(plain.inner.get(i), loss),
                    1e-4);
            assertNear(
                    doubles(adapter.outer().gradient()),
                    differences(plain.outer.get(i), loss),
                    1e-4);
        }
    }

    /** Every eleventh element; the others are not a number. */
    private static double[] differences(double[] values, DoubleSupplier loss) {
        double[] slopes = new double[values.length];
        for (int i = 0; i < values.length; i++) {
            slopes[i] = Double.NaN;
            if (i % 11 == 0) {
                double own = values[i];
                values[i] = own + STEP;
                double above = loss.getAsDouble();
                values[i] = own - STEP;
                slopes[i] = (above - loss.getAsDouble()) / (2 * STEP);
                values[i] = own;
            }
        }
        return slopes;
    }

    private static void assertNear(double[] found, double[] wanted, double most) {
        assertThat(found).hasSameSizeAs(wanted);
        for (int i = 0; i < found.length; i++) {
            if (!Double.isNaN(wanted[i])) {
                double allowed = most * Math.max(1, Math.abs(wanted[i]));
                assertThat(found[i]).as("element %d", i).isCloseTo(wanted[i], within(allowed));
            }
        }
    }

    private static double dot(double[] a, double[] b) {
        double sum = 0;
        for (int i = 0; i < a.length; i++) {
            sum += a[i] * b[i];
        }
        return sum;
    }

    private static Tensor random(DeviceScope scope, String name, int columns) {
        Tensor tensor = scope.tensor(name, DType.F32, ROWS, columns);
        CounterRandom numbers = CounterRandom.of(5, name);
        for (long i = 0; i < tensor.elements(); i++) {
            requireNonNull(tensor.segment())
                    .setAtIndex(ValueLayout.JAVA_FLOAT, i, (float) numbers.normal(i));
        }
        return tensor;
    }

    private static double[] doubles(Tensor tensor) {
        float[] floats = tensor.segment().toArray(ValueLayout.JAVA_FLOAT);
        double[] values = new double[floats.length];
        for (int i = 0; i < floats.length; i++) {
            values[i] = floats[i];
        }
        return values;
    }
}
