package dev.penstock.runtime.model;

import static java.util.Objects.requireNonNull;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;

/**
 * Continues text: the layers of training, all on one device, fed slice by slice. Keys and values of
 * earlier tokens are kept, so that each new token costs one row. When the context is full, its
 * younger half is fed again from position 0 and generation goes on. Used from one thread.
 */
public final class GptGenerator implements AutoCloseable {
    private static final int SLICE_TOKENS = 128;

    private final GptShape shape;
    private final StageScopes scopes;
    private final StageLayers layers;
    private final int sliceTokens;
    private final Tensor tokens;
    private final List<Tensor> queryKeyValues = new ArrayList<>();
    private final UnitActivations largest;
    private final Map<Integer, UnitActivations> byRows = new HashMap<>();
    private int fed;
    private int lastRows;

    /**
     * Allocates the model in {@code device}'s memory.
     *
     * @param source the parameters; see {@link ParameterSource#complete} to refuse missing ones
     */
    public GptGenerator(
            Device device, GptShape shape, Precision precision, ParameterSource source) {
        this.shape = shape;
        ShardShape whole = ShardShape.whole(shape);
        sliceTokens = Math.min(SLICE_TOKENS, shape.context());
        scopes = new StageScopes(device.memory(), "generator");
        try {
            StageParameters parameters =
                    StageParameters.allocate(
                            new ParameterAllocator(scopes, precision, ParameterAllocator.Use.INFER),
                            whole,
                            StageRole.whole(shape));
            new ParameterInit(source, 0, shape.layers()).fill(parameters, device.kernels());
            layers = layers(device.kernels(), precision, parameters);
            tokens = scopes.activations().tensor("tokens", DType.I32, 1, sliceTokens);
            allocateQueryKeyValues();
            largest =
                    Carver.carve(
                            scopes.activations(),
                            "activations of a slice",
                            carver -> UnitActivations.carveForwardOnly(carver, whole, sliceTokens));
        } catch (RuntimeException e) {
            scopes.close();
            throw e;
        }
    }

    private StageLayers layers(Kernels kernels, Precision precision, StageParameters parameters) {
        ShardShape whole = ShardShape.whole(shape);
        return new StageLayers(
                new Compute(
                        kernels,
                        precision.multiply(),
                        new FiniteGuard(kernels),
                        new TensorShards(kernels, whole, null)),
                whole,
                StageRole.whole(shape),
                parameters,
                ParameterStream.resident(),
                new WholeAttention(kernels, whole.heads(), whole.context()),
                PartTokens.all(shape.context()),
                LossHead.logitsScratch(scopes.scratch(), whole, 1));
    }

    private void allocateQueryKeyValues() {
        for (int layer = 0; layer < shape.layers(); layer++) {
            queryKeyValues.add(
                    scopes.activations()
                            .tensor(
                                    "queries, keys and values of h." + layer,
                                    DType.F32,
                                    shape.context(),
                                    3 * shape.width()));
        }
    }

    /**
     * Continues a prompt.
     *
     * @param prompt at least one token; of a long one, only the last {@code context} tokens count
     * @param count tokens to generate
     * @param keepGoing told each token as it comes; false ends the text after it
     * @return the generated tokens, without the prompt
     * @throws IllegalArgumentException if the prompt is empty or has tokens that do not exist
     */
    public int[] generate(int[] prompt, int count, Sampling sampling, IntPredicate keepGoing) {
        check(prompt);
        TokenSampler sampler = new TokenSampler(sampling);
        int[] text = Arrays.copyOf(prompt, prompt.length + count);
        int length = prompt.length;
        restart();
        feed(text, Math.max(0, length - shape.context()), length);
        while (length < text.length) {
            int token = sampler.choose(logits());
            text[length++] = token;
            if (!keepGoing.test(token)) {
                break;
            }
            if (length < text.length) {
                feedNext(text, length);
            }
        }
        return Arrays.copyOfRange(text, prompt.length, length);
    }

    private void check(int[] prompt) {
        if (prompt.length == 0) {
            throw new IllegalArgumentException("a prompt needs at least 1 token, got none");
        }
        List<Integer> unknown =
                IntStream.of(prompt)
                        .filter(token -> token < 0 || token >= shape.vocabulary())
                        .boxed()
                        .toList();
        if (!unknown.isEmpty()) {
            throw new IllegalArgumentException(
                    "the model knows tokens 0 to %d, but the prompt has %s; use the tokenizer it was trained with"
                            .formatted(shape.vocabulary() - 1, unknown));
        }
    }

    private void feedNext(int[] text, int length) {
        if (fed < shape.context()) {
            feed(text, length - 1, length);
            return;
        }
        restart();
        feed(text, length - Math.max(1, shape.context() / 2), length);
    }

    /** Forgets all tokens. */
    void restart() {
        fed = 0;
    }

    /** Feeds {@code text[from, to)} after what was fed before. */
    void feed(int[] text, int from, int to) {
        for (int first = from; first < to; first += sliceTokens) {
            feedSlice(text, first, Math.min(sliceTokens, to - first));
        }
    }

    private void feedSlice(int[] text, int first, int count) {
        Tensor slice = tokens.columns(0, count);
        MemorySegment.copy(text, first, slice.segment(), ValueLayout.JAVA_INT, 0, count);
        TokenBlocks blocks = new TokenBlocks(1, count, fed, sliceTokens);
        layers.forward(slice, null, activations(count), queryKeyValues, null, blocks);
        lastRows = count;
        fed += count;
    }

    /** The logits of the token after the last one fed. */
    float[] logits() {
        Tensor normed = requireNonNull(activations(lastRows).head()).normed();
        Tensor logits = requireNonNull(layers.head()).logits(normed.rows(lastRows - 1, 1));
        return logits.segment().toArray(ValueLayout.JAVA_FLOAT);
    }

    private UnitActivations activations(int rows) {
        return byRows.computeIfAbsent(rows, n -> largest.first(n, n));
    }

    @Override
    public void close() {
        scopes.close();
    }
}
