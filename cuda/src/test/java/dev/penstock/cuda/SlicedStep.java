package dev.penstock.cuda;

import dev.penstock.cuda.device.AdamWStep;
import dev.penstock.cuda.device.AttentionShape;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Gelu;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.device.TokenRange;
import dev.penstock.cuda.kernels.HostMatrix;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Random;

/**
 * A training step of one transformer block with every op of the table, whole or in token slices:
 * forward slice by slice, backward in reverse. What it returns are the bits of all gradients,
 * losses and updated weights, by name.
 */
final class SlicedStep {
    /** Sizes of the step: sequences, context, width, heads, vocabulary, grid. */
    record Sizes(int b, int t, int d, int heads, int vocabulary, int grid) {}

    private final Sizes s;
    private final AttentionShape shape;
    private final DType multiply;
    private final DeviceScope memory;
    private final Kernels k;
    private final Random random = new Random(5);
    private final Map<String, Tensor> parameters = new LinkedHashMap<>();
    private final Map<String, Tensor> gradients = new LinkedHashMap<>();
    private final Tensor qkv;
    private final Tensor dQkv;
    private final Tensor losses;
    private final int[] tokens;

    SlicedStep(Device device, Sizes sizes, DType multiply) {
        this.s = sizes;
        this.shape = AttentionShape.dense(s.heads, s.d);
        this.multiply = multiply;
        this.memory = device.memory();
        this.k = device.kernels();
        parameter("wte", s.vocabulary, s.d);
        parameter("wpe", s.t, s.d);
        for (String norm : new String[] {"ln1", "ln2"}) {
            parameter(norm + ".gain", 1, s.d);
            parameter(norm + ".bias", 1, s.d);
        }
        parameter("qkv.weight", s.d, 3 * s.d);
        parameter("qkv.bias", 1, 3 * s.d);
        parameter("out.weight", s.d, s.d);
        parameter("out.bias", 1, s.d);
        parameter("up.weight", s.d, 4 * s.d);
        parameter("up.bias", 1, 4 * s.d);
        parameter("head", s.vocabulary, 4 * s.d);
        qkv = floats(s.b * s.t, 3 * s.d);
        dQkv = floats(s.b * s.t, 3 * s.d);
        losses = floats(1, s.b * s.t);
        tokens = random.ints((long) s.b * s.t, 0, s.vocabulary).toArray();
    }

    private void parameter(String name, int rows, int columns) {
        Tensor tensor = floats(rows, columns);
        for (int i = 0; i < rows; i++) {
            for (int j = 0; j < columns; j++) {
                HostMatrix.of(tensor).set(i, j, (float) random.nextGaussian() * 0.3f);
            }
        }
        parameters.put(name, tensor);
        gradients.put(name, floats(rows, columns));
    }

    private Tensor floats(int rows, int columns) {
        return memory.tensor("step", DType.F32, rows, columns);
    }

    private Tensor weight(String name) {
        return Objects.requireNonNull(parameters.get(name));
    }

    private Tensor gradient(String name) {
        return Objects.requireNonNull(gradients.get(name));
    }

    /** Runs the step. */
    Map<String, Long> run(int... slices) {
        Slice[] units = new Slice[slices.length];
        int first = 0;
        for (int i = 0; i < slices.length; i++) {
            units[i] = new Slice(new TokenBlocks(s.b, slices[i], first, s.grid));
            units[i].forward();
            first += slices[i];
        }
        for (int i = slices.length - 1; i >= 0; i--) {
            units[i].backward();
        }
        Map<String, Long> bits = new LinkedHashMap<>();
        bits.put("losses", bits(losses));
        for (String name : parameters.keySet()) {
            bits.put("d " + name, bits(gradient(name)));
            bits.put("norm " + name, Double.doubleToRawLongBits(k.squaredNorm(gradient(name))));
        }
        AdamWStep update = new AdamWStep(1, 1e-2, 0.9, 0.95, 1e-8, 0.1, 0.5);
        for (String name : parameters.keySet()) {
            Tensor w = weight(name);
            Tensor m = floats(w.rows(), w.columns());
            k.adamW(w, gradient(name), m, floats(w.rows(), w.columns()), update);
            bits.put(name, bits(w));
        }
        return bits;
    }

    static long bits(Tensor tensor) {
        long hash = 1;
        HostMatrix matrix = HostMatrix.of(tensor);
        for (int i = 0; i < tensor.rows(); i++) {
            for (int j = 0; j < tensor.columns(); j++) {
                hash = 31 * hash + Float.floatToRawIntBits(matrix.get(i, j));
            }
        }
        return hash;
    }

    /** The activations of one unit. */
    private final class Slice {
        private final TokenBlocks blocks;
        private final TokenRange all = TokenRange.all(s.vocabulary);
        private final int n;
        private final Tensor ids;
        private final Tensor targets;
        private final Tensor x;
        private final Tensor a;
        private final Tensor unitQkv;
        private final Tensor attended;
        private final Tensor logSumExp;
        private final Tensor o;
        private final Tensor c;
        private final Tensor pre;
        private final Tensor g;
        private final Tensor logits;
        private final Tensor[] statistics = new Tensor[4];

        Slice(TokenBlocks blocks) {
            this.blocks = blocks;
            n = blocks.rows();
            ids = integers(0);
            targets = integers(1);
            x = floats(n, s.d);
            a = floats(n, s.d);
            unitQkv = floats(n, 3 * s.d);
            attended = floats(n, s.d);
            logSumExp = floats(n, s.heads);
            o = floats(n, s.d);
            c = floats(n, s.d);
            pre = floats(n, 4 * s.d);
            g = floats(n, 4 * s.d);
            logits = floats(n, s.vocabulary);
            for (int i = 0; i < statistics.length; i++) {
                statistics[i] = floats(1, n);
            }
        }

        private Tensor positions(Tensor table) {
            return table.rows(blocks.firstToken(), blocks.tokens());
        }

        private Tensor sequence(Tensor unit, int b) {
            return unit.rows(b * blocks.tokens(), blocks.tokens());
        }

        private int row(int i) {
            return i / blocks.tokens() * s.t + blocks.firstToken() + i % blocks.tokens();
        }

        private Tensor integers(int shift) {
            Tensor tensor = memory.tensor("ids", DType.I32, 1, n);
            for (int i = 0; i < n; i++) {
                HostMatrix.of(tensor).setInt(0, i, tokens[(row(i) + shift) % tokens.length]);
            }
            return tensor;
        }

        private void move(Tensor unit, Tensor whole, boolean toWhole) {
            for (int b = 0; b < s.b; b++) {
                Tensor inUnit = sequence(unit, b);
                Tensor inWhole = whole.rows(b * s.t + blocks.firstToken(), blocks.tokens());
                k.copy(toWhole ? inUnit : inWhole, toWhole ? inWhole : inUnit);
            }
        }

        private void times(Tensor left, String right, boolean transposed, Tensor result) {
            k.gemm(multiply, false, left, transposed, weight(right), result, false);
        }

        void forward() {
            k.embedding(ids, all, weight("wte"), x);
            for (int b = 0; b < s.b; b++) {
                k.add(positions(weight("wpe")), sequence(x, b));
            }
            k.layerNorm(
                    x,
                    weight("ln1.gain"),
                    weight("ln1.bias"),
                    a,
                    statistics[0],
                    statistics[1],
                    1e-5);
            times(a, "qkv.weight", false, unitQkv);
            k.addBias(unitQkv, weight("qkv.bias"));
            move(unitQkv, qkv, true);
            k.attention(multiply, qkv, attended, logSumExp, shape, s.t, blocks);
            times(attended, "out.weight", false, o);
            k.addBiasAndResidual(o, weight("out.bias"), x);
            k.layerNorm(
                    o,
                    weight("ln2.gain"),
                    weight("ln2.bias"),
                    c,
                    statistics[2],
                    statistics[3],
                    1e-5);
            times(c, "up.weight", false, pre);
            k.biasGelu(pre, weight("up.bias"), g, Gelu.TANH);
            times(g, "head", true, logits);
            Tensor unitLosses = floats(1, n);
            Tensor part = floats(1, 3 * n);
            k.softmaxPart(logits, targets, all, part, true);
            k.crossEntropy(part, 0, logits, targets, all, unitLosses, 1f / (s.b * s.t));
            for (int i = 0; i < n; i++) {
                HostMatrix.of(losses).set(0, row(i), HostMatrix.of(unitLosses).get(0, i));
            }
        }

        void backward() {
            k.weightGradient(multiply, logits, g, gradient("head"), blocks);
            Tensor dg = floats(n, 4 * s.d);
            times(logits, "head", false, dg);
            k.geluBackward(pre, dg, Gelu.TANH);
            linearBackward("up", c, dg);
            Tensor dc = floats(n, s.d);
            times(dg, "up.weight", true, dc);
            Tensor dx = floats(n, s.d);
            normBackward("ln2", dc, o, 2, dx);
            linearBackward("out", attended, dx);
            Tensor dAttended = floats(n, s.d);
            times(dx, "out.weight", true, dAttended);
            k.attentionBackward(
                    multiply, qkv, attended, logSumExp, dAttended, dQkv, shape, s.t, blocks);
            move(unitQkv, dQkv, false);
            linearBackward("qkv", a, unitQkv);
            Tensor da = floats(n, s.d);
            times(unitQkv, "qkv.weight", true, da);
            normBackward("ln1", da, x, 0, dx);
            k.embeddingBackward(dx, ids, all, gradient("wte"), blocks);
            for (int b = 0; b < s.b; b++) {
                k.add(sequence(dx, b), positions(gradient("wpe")));
            }
        }

        private void linearBackward(String name, Tensor in, Tensor dOut) {
            k.biasGradient(dOut, gradient(name + ".bias"), blocks);
            k.weightGradient(multiply, in, dOut, gradient(name + ".weight"), blocks);
        }

        private void normBackward(String name, Tensor dOut, Tensor in, int at, Tensor dIn) {
            Tensor mean = statistics[at];
            Tensor rstd = statistics[at + 1];
            k.layerNormBackwardInput(dOut, in, weight(name + ".gain"), mean, rstd, dIn);
            k.layerNormBackwardWeight(
                    dOut,
                    in,
                    mean,
                    rstd,
                    gradient(name + ".gain"),
                    gradient(name + ".bias"),
                    blocks);
        }
    }
}
