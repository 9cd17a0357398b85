package dev.penstock.cuda;

import dev.penstock.cuda.device.AttentionShape;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Gelu;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.kernels.HostMatrix;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Random;

/**
 * Forward and backward of one block as Llama's family has it, whole or in token slices, like {@link
 * SlicedStep}: RMS norms of rows and of heads, rotary positions, groups of heads in a window,
 * SwiGLU, and the exact GELU behind it. Returns the bits of all gradients by name.
 */
final class SlicedLlamaStep {
    private static final int SEQUENCES = 2;
    private static final int HEAD_SIZE = 10;
    private static final int WIDTH = 36;
    private static final int HIDDEN = 44;
    private static final double EPSILON = 1e-6;
    private static final AttentionShape SHAPE = new AttentionShape(4, 2, HEAD_SIZE, 13, 0.3);
    private static final int TURNED = SHAPE.queryColumns() + SHAPE.keyColumns();

    private final int context;
    private final int grid;
    private final DType multiply;
    private final DeviceScope memory;
    private final Kernels k;
    private final Random random = new Random(6);
    private final Map<String, Tensor> weights = new LinkedHashMap<>();
    private final Map<String, Tensor> gradients = new LinkedHashMap<>();
    private final Tensor input;
    private final Tensor outputGradient;
    private final Tensor turns;
    private final Tensor qkv;
    private final Tensor dQkv;
    private final Tensor dInput;

    SlicedLlamaStep(Device device, int context, int grid, DType multiply) {
        this.context = context;
        this.grid = grid;
        this.multiply = multiply;
        this.memory = device.memory();
        this.k = device.kernels();
        weight("norm", 1, WIDTH);
        weight("qkv", WIDTH, SHAPE.columns());
        weight("q norm", 1, HEAD_SIZE);
        weight("k norm", 1, HEAD_SIZE);
        weight("out", SHAPE.queryColumns(), WIDTH);
        weight("gate", WIDTH, 2 * HIDDEN);
        weight("bias", 1, HIDDEN);
        weight("head", HIDDEN, WIDTH);
        int rows = SEQUENCES * context;
        input = normals(rows, WIDTH);
        outputGradient = normals(rows, WIDTH);
        turns = floats(context, HEAD_SIZE);
        for (int p = 0; p < context; p++) {
            for (int j = 0; j < HEAD_SIZE / 2; j++) {
                double angle = p * StrictMath.pow(100, -2.0 * j / HEAD_SIZE);
                HostMatrix.of(turns).set(p, j, (float) StrictMath.cos(angle));
                HostMatrix.of(turns).set(p, HEAD_SIZE / 2 + j, (float) StrictMath.sin(angle));
            }
        }
        qkv = floats(rows, SHAPE.columns());
        dQkv = floats(rows, SHAPE.columns());
        dInput = floats(rows, WIDTH);
    }

    private void weight(String name, int rows, int columns) {
        weights.put(name, normals(rows, columns));
        gradients.put(name, floats(rows, columns));
    }

    private Tensor weight(String name) {
        return Objects.requireNonNull(weights.get(name));
    }

    private Tensor gradient(String name) {
        return Objects.requireNonNull(gradients.get(name));
    }

    private Tensor floats(int rows, int columns) {
        return memory.tensor("step", DType.F32, rows, columns);
    }

    private Tensor normals(int rows, int columns) {
        Tensor tensor = floats(rows, columns);
        for (int i = 0; i < rows; i++) {
            for (int j = 0; j < columns; j++) {
                HostMatrix.of(tensor).set(i, j, (float) random.nextGaussian() * 0.3f);
            }
        }
        return tensor;
    }

    /** Runs the step. */
    Map<String, Long> run(int... slices) {
        Slice[] units = new Slice[slices.length];
        int first = 0;
        for (int i = 0; i < slices.length; i++) {
            units[i] = new Slice(new TokenBlocks(SEQUENCES, slices[i], first, grid));
            units[i].forward();
            first += slices[i];
        }
        for (int i = slices.length - 1; i >= 0; i--) {
            units[i].backward();
        }
        Map<String, Long> bits = new LinkedHashMap<>();
        gradients.forEach((name, gradient) -> bits.put("d " + name, SlicedStep.bits(gradient)));
        bits.put("d input", SlicedStep.bits(dInput));
        return bits;
    }

    /** The activations of one unit. */
    private final class Slice {
        private final TokenBlocks blocks;
        private final int n;
        private final Tensor x;
        private final Tensor normed;
        private final Tensor r;
        private final Tensor unitQkv;
        private final Tensor turned;
        private final Tensor rOfQueries;
        private final Tensor rOfKeys;
        private final Tensor attended;
        private final Tensor logSumExp;
        private final Tensor out;
        private final Tensor gated;
        private final Tensor pre;
        private final Tensor activated;

        Slice(TokenBlocks blocks) {
            this.blocks = blocks;
            n = blocks.rows();
            x = floats(n, WIDTH);
            normed = floats(n, WIDTH);
            r = floats(1, n);
            unitQkv = floats(n, SHAPE.columns());
            turned = floats(n, SHAPE.columns());
            rOfQueries = floats(1, n * SHAPE.heads());
            rOfKeys = floats(1, n * SHAPE.keyHeads());
            attended = floats(n, SHAPE.queryColumns());
            logSumExp = floats(n, SHAPE.heads());
            out = floats(n, WIDTH);
            gated = floats(n, 2 * HIDDEN);
            pre = floats(n, HIDDEN);
            activated = floats(n, HIDDEN);
        }

        private Tensor positions() {
            return turns.rows(blocks.firstToken(), blocks.tokens());
        }

        private void move(Tensor unit, Tensor whole, boolean toWhole) {
            for (int b = 0; b < SEQUENCES; b++) {
                Tensor inUnit = unit.rows(b * blocks.tokens(), blocks.tokens());
                Tensor inWhole = whole.rows(b * context + blocks.firstToken(), blocks.tokens());
                k.copy(toWhole ? inUnit : inWhole, toWhole ? inWhole : inUnit);
            }
        }

        private void times(Tensor left, String right, boolean transposed, Tensor result) {
            k.gemm(multiply, false, left, transposed, weight(right), result, false);
        }

        private static Tensor queries(Tensor qkv) {
            return qkv.columns(0, SHAPE.queryColumns());
        }

        private static Tensor keys(Tensor qkv) {
            return qkv.columns(SHAPE.queryColumns(), SHAPE.keyColumns());
        }

        void forward() {
            move(x, input, false);
            k.rmsNorm(x, weight("norm"), normed, r, EPSILON);
            times(normed, "qkv", false, unitQkv);
            k.copy(unitQkv, turned);
            k.rmsNorm(queries(unitQkv), weight("q norm"), queries(turned), rOfQueries, EPSILON);
            k.rmsNorm(keys(unitQkv), weight("k norm"), keys(turned), rOfKeys, EPSILON);
            k.rotate(turned.columns(0, TURNED), positions(), false);
            move(turned, qkv, true);
            k.attention(multiply, qkv, attended, logSumExp, SHAPE, context, blocks);
            times(attended, "out", false, out);
            times(out, "gate", false, gated);
            k.swiGlu(gated, pre);
            k.biasGelu(pre, weight("bias"), activated, Gelu.EXACT);
        }

        void backward() {
            Tensor dy = floats(n, WIDTH);
            move(dy, outputGradient, false);
            k.weightGradient(multiply, activated, dy, gradient("head"), blocks);
            Tensor dHidden = floats(n, HIDDEN);
            times(dy, "head", true, dHidden);
            k.geluBackward(pre, dHidden, Gelu.EXACT);
            k.biasGradient(dHidden, gradient("bias"), blocks);
            k.swiGluBackward(gated, dHidden, gated);
            k.weightGradient(multiply, out, gated, gradient("gate"), blocks);
            Tensor dOut = floats(n, WIDTH);
            times(gated, "gate", true, dOut);
            k.weightGradient(multiply, attended, dOut, gradient("out"), blocks);
            Tensor dAttended = floats(n, SHAPE.queryColumns());
            times(dOut, "out", true, dAttended);
            k.attentionBackward(
                    multiply, qkv, attended, logSumExp, dAttended, dQkv, SHAPE, context, blocks);
            Tensor d = turned;
            move(d, dQkv, false);
            k.rotate(d.columns(0, TURNED), positions(), true);
            normOfHeads("q norm", queries(d), queries(unitQkv), rOfQueries);
            normOfHeads("k norm", keys(d), keys(unitQkv), rOfKeys);
            k.weightGradient(multiply, normed, d, gradient("qkv"), blocks);
            Tensor dNormed = floats(n, WIDTH);
            times(d, "qkv", true, dNormed);
            k.rmsNormBackwardWeight(dNormed, x, r, gradient("norm"), blocks);
            k.rmsNormBackwardInput(dNormed, x, weight("norm"), r, dOut, true);
            move(dOut, dInput, true);
        }

        private void normOfHeads(String name, Tensor d, Tensor in, Tensor roots) {
            k.rmsNormBackwardWeight(d, in, roots, gradient(name), blocks);
            k.rmsNormBackwardInput(d, in, weight(name), roots, d, false);
        }
    }
}
