package dev.penstock.cuda.gpu;

import dev.penstock.cuda.device.AdamWParameter;
import dev.penstock.cuda.device.AdamWStep;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Epilogue;
import dev.penstock.cuda.device.Gelu;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.device.TokenRange;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.function.LongConsumer;

/**
 * What a rank does with its GPU in a step of three micro-batches: a tensor arrives over a link and
 * is added to the embeddings, a block goes forward and backward, with a product that does what
 * follows it where there are such, a boundary tensor leaves by the host, another goes to a slot on
 * the GPU, losses and norms are read, weights are updated and read for a checkpoint. What the host
 * reads is given as bits, in its order.
 */
final class RankStep {
    private static final int MICRO_BATCHES = 3;
    private static final int ROWS = 4;
    private static final int WIDTH = 8;
    private static final int VOCABULARY = 12;
    private static final TokenRange ALL = TokenRange.all(VOCABULARY);
    private static final TokenBlocks BLOCKS = new TokenBlocks(1, ROWS, 0, 2);

    /** More than a half of the pinned memory of copies. */
    private static final int CHECKPOINT_BYTES = HostCopies.HALF_BYTES + 64;

    private final Kernels k;
    private final DeviceScope scope;
    private final LongConsumer seen;
    private final Random random = new Random(7);
    private final Tensor tokens;
    private final Tensor table;
    private final Tensor gain;
    private final Tensor bias;
    private final Tensor weight;
    private final Tensor head;
    private final List<Tensor> parameters;
    private final List<AdamWParameter> updated;
    private final Tensor input;
    private final Tensor output;
    private final Tensor slot;
    private final Tensor received;

    private RankStep(Device device, DeviceScope scope, LongConsumer seen) {
        this.k = device.kernels();
        this.scope = scope;
        this.seen = seen;
        tokens = scope.tensor("tokens", DType.I32, 1, ROWS);
        table = normals("table", VOCABULARY, WIDTH);
        gain = normals("gain", 1, WIDTH);
        bias = normals("bias", 1, WIDTH);
        weight = normals("weight", WIDTH, WIDTH);
        head = normals("head", VOCABULARY, WIDTH);
        parameters = List.of(table, gain, bias, weight, head);
        updated = parameters.stream().map(this::withMoments).toList();
        input = staged("input");
        output = staged("output");
        slot = staged("slot");
        received = floats("received", ROWS, WIDTH);
    }

    /** Runs the step and gives its memory back, also when it fails. */
    static void run(Device device, LongConsumer seen) {
        try (DeviceScope scope = device.memory().child("step", Long.MAX_VALUE)) {
            new RankStep(device, scope, seen).run();
        }
    }

    private void run() {
        for (int i = 0; i < MICRO_BATCHES; i++) {
            microBatch(i);
        }
        List<Tensor> gradients = updated.stream().map(AdamWParameter::gradient).toList();
        for (double norm : k.squaredNorms(gradients)) {
            seen.accept(Double.doubleToRawLongBits(norm));
        }
        k.adamW(updated, new AdamWStep(1, 1e-2, 0.9, 0.95, 1e-8, 0.1, 0.5));
        parameters.forEach(this::see);
        see(received);
        checkpoint();
    }

    private void microBatch(int number) {
        tokens.writeIndices(MemorySegment.ofArray(random.ints(ROWS, 0, VOCABULARY).toArray()));
        input.staging().copyFrom(MemorySegment.ofArray(values(ROWS * WIDTH)));
        input.buffer().beginToDevice(input.bytes());
        Tensor x = floats("x", ROWS, WIDTH);
        Tensor normed = floats("normed", ROWS, WIDTH);
        Tensor pre = floats("pre", ROWS, WIDTH);
        Tensor y = floats("y", ROWS, WIDTH);
        Tensor mean = floats("mean", 1, ROWS);
        Tensor rstd = floats("rstd", 1, ROWS);
        Tensor losses = floats("losses", 1, ROWS);
        Tensor logits = floats("logits", ROWS, VOCABULARY);
        k.embedding(tokens, ALL, table, x);
        input.buffer().kernelsAwaitCopy();
        k.add(input, x);
        k.layerNorm(x, gain, bias, normed, mean, rstd, 1e-5);
        k.gemm(DType.F32, false, normed, false, weight, pre, false);
        k.biasGelu(pre, bias, y, Gelu.TANH);
        k.gemm(DType.F32, false, y, true, head, logits, false);
        k.crossEntropyOfRows(logits, tokens, losses, 1f / ROWS, logits);
        k.watchFinite(logits);
        if (k.joinsProducts()) {
            joinedProduct(normed);
        }

        Tensor dy = floats("dy", ROWS, WIDTH);
        Tensor dNormed = floats("d normed", ROWS, WIDTH);
        k.weightGradient(DType.F32, logits, y, gradient(4), BLOCKS);
        k.gemm(DType.F32, false, logits, false, head, dy, false);
        k.geluBackward(pre, dy, Gelu.TANH);
        k.biasGradient(dy, gradient(2), BLOCKS);
        k.weightGradient(DType.F32, normed, dy, gradient(3), BLOCKS);
        k.gemm(DType.F32, false, dy, true, weight, dNormed, false);
        GpuDeviceTest.awaitCopy(output.buffer()); // of the micro-batch before
        k.zero(output);
        k.layerNormBackwardInput(dNormed, x, gain, mean, rstd, output);
        k.layerNormBackwardWeight(dNormed, x, mean, rstd, gradient(1), gradient(2), BLOCKS);
        k.embeddingBackward(output, tokens, ALL, gradient(0), BLOCKS);

        if (number % 2 == 0) {
            output.buffer().beginToHost(output.bytes());
            k.zero(dNormed); // other work meanwhile
            GpuDeviceTest.awaitCopy(output.buffer());
            see(output.staging());
        } else {
            output.buffer().beginCopyTo(slot.buffer(), output.bytes());
            GpuDeviceTest.awaitCopy(output.buffer());
        }
        k.add(slot, received);
        slot.buffer().lastUsed();
        GpuDeviceTest.awaitCopy(input.buffer());
        see(losses);
        seen.accept(k.firstNotFinite());
    }

    private void joinedProduct(Tensor x) {
        Tensor input = rounded(x);
        Tensor pre = halves("rounded pre", ROWS);
        Tensor y = halves("rounded y", ROWS);
        Tensor result = floats("of a joined product", ROWS, WIDTH);
        k.gemmThen(input, false, rounded(weight), new Epilogue.BiasAndGelu(bias, pre), y);
        k.copy(y, result);
        k.add(result, received);
    }

    private void checkpoint() {
        DeviceBuffer whole = scope.allocate("checkpoint", CHECKPOINT_BYTES);
        byte[] bytes = new byte[CHECKPOINT_BYTES];
        Arrays.fill(bytes, (byte) 3);
        whole.write(0, MemorySegment.ofArray(bytes));
        see(whole.contents(0, CHECKPOINT_BYTES));
    }

    private void see(Tensor tensor) {
        see(tensor.contents());
    }

    private void see(MemorySegment bytes) {
        seen.accept(Arrays.hashCode(bytes.toArray(ValueLayout.JAVA_INT)));
    }

    private Tensor gradient(int parameter) {
        return updated.get(parameter).gradient();
    }

    private AdamWParameter withMoments(Tensor parameter) {
        int rows = parameter.rows();
        int columns = parameter.columns();
        return new AdamWParameter(
                parameter,
                floats("gradient", rows, columns),
                floats("m", rows, columns),
                floats("v", rows, columns),
                null,
                true);
    }

    private Tensor floats(String name, int rows, int columns) {
        return scope.tensor(name, DType.F32, rows, columns);
    }

    private Tensor halves(String name, int rows) {
        return scope.tensor(name, DType.BF16, rows, WIDTH);
    }

    private Tensor rounded(Tensor tensor) {
        Tensor halves = halves("rounded", tensor.rows());
        k.copy(tensor, halves);
        return halves;
    }

    private Tensor normals(String name, int rows, int columns) {
        Tensor tensor = floats(name, rows, columns);
        tensor.write(MemorySegment.ofArray(values(rows * columns)));
        return tensor;
    }

    private Tensor staged(String name) {
        return Tensor.of(
                scope.allocateStaged(name, (long) Float.BYTES * ROWS * WIDTH),
                DType.F32,
                ROWS,
                WIDTH);
    }

    private float[] values(int count) {
        float[] values = new float[count];
        for (int i = 0; i < count; i++) {
            values[i] = (float) random.nextGaussian();
        }
        return values;
    }
}
