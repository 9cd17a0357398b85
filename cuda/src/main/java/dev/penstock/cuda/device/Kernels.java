package dev.penstock.cuda.device;

import java.util.List;

/**
 * The op table of a device. Legend of shapes, all row-major:
 *
 * <pre>
 *   n     rows of a unit: sequences x tokens of the slice, sequence by sequence
 *   T     context: tokens of a whole sequence       B  sequences of the micro-batch
 *   d     model width      h  heads      V  vocabulary
 * </pre>
 *
 * <p>All tensors are F32 unless said otherwise. Forward and backward of an op stand together.
 * "accumulates" means that the result is added to what the tensor holds. Kernels run in the order
 * of the calls and may still run when a call returns: later kernels see their results, the host
 * sees them in a {@linkplain DeviceBuffer#segment segment} that it asks for afterwards, or in any
 * after {@link #finish}. No call allocates device memory; scratch is held by the device.
 *
 * <p>Determinism: for a given fingerprint every element of every result depends only on the inputs,
 * not on threads, on how rows are split into calls, or on whether code is compiled yet. Sums over
 * tokens follow {@link TokenBlocks}. (Products of cuBLAS may depend on how rows are split, and sum
 * over tokens in an order of their own.) Called from one thread at a time.
 */
public interface Kernels {

    // ---- matrix products ------------------------------------------------------------------------

    /**
     * {@code c = op(a) op(b)}, or {@code c += op(a) op(b)}.
     *
     * @param multiply type in which factors are multiplied: {@code F32}, or {@code BF16} (F32
     *     factors are rounded first; sums stay F32). {@code a} and {@code b} may themselves be BF16
     *     tensors then.
     * @param c F32 {@code [m, n]}
     */
    void gemm(
            DType multiply,
            boolean transposeA,
            Tensor a,
            boolean transposeB,
            Tensor b,
            Tensor c,
            boolean accumulate);

    /**
     * {@code dWeight += x^T dy}, block by block in the order of {@code blocks}; x {@code [n, in]},
     * dy {@code [n, out]}, dWeight {@code [in, out]}.
     */
    void weightGradient(DType multiply, Tensor x, Tensor dy, Tensor dWeight, TokenBlocks blocks);

    /**
     * {@code dBias[j] += sum over rows of dy[., j]}, rows chained in the order of {@code blocks}.
     */
    void biasGradient(Tensor dy, Tensor dBias, TokenBlocks blocks);

    /** {@code y += bias} on every row. */
    void addBias(Tensor y, Tensor bias);

    /** {@code y = (y + bias) + residual}. */
    void addBiasAndResidual(Tensor y, Tensor bias, Tensor residual);

    // ---- embedding ------------------------------------------------------------------------------

    /**
     * {@code y[row] = table[tokens[row]]}, zeros where another shard has the token; y {@code [n,
     * d]}, tokens I32 {@code [1, n]}, which the host wrote.
     *
     * @param range tokens of the table's rows
     */
    void embedding(Tensor tokens, TokenRange range, Tensor table, Tensor y);

    /**
     * Scatters {@code dy} into the table's gradient, rows in the order of {@code blocks}; those of
     * other shards' tokens are left out.
     */
    void embeddingBackward(
            Tensor dy, Tensor tokens, TokenRange range, Tensor dTable, TokenBlocks blocks);

    // ---- layer norm, eps 1e-5, biased variance ----------------------------------------------

    /** {@code y = (x - mean) * rstd * gain + bias}; keeps mean and rstd, each {@code [1, n]}. */
    void layerNorm(Tensor x, Tensor gain, Tensor bias, Tensor y, Tensor mean, Tensor rstd);

    /** {@code dx +=} the input gradient (the residual branch already lies in dx). */
    void layerNormBackwardInput(
            Tensor dy, Tensor x, Tensor gain, Tensor mean, Tensor rstd, Tensor dx);

    /** {@code dGain +=} and {@code dBias +=}, rows chained in the order of {@code blocks}. */
    void layerNormBackwardWeight(
            Tensor dy,
            Tensor x,
            Tensor mean,
            Tensor rstd,
            Tensor dGain,
            Tensor dBias,
            TokenBlocks blocks);

    // ---- GELU, tanh form --------------------------------------------------------------------

    /** {@code pre += bias; y = gelu(pre)}; the backward needs {@code pre}. */
    void biasGelu(Tensor pre, Tensor bias, Tensor y);

    /** {@code dy *= gelu'(pre)} in place. */
    void geluBackward(Tensor pre, Tensor dy);

    // ---- causal self-attention over a slice -------------------------------------------------

    /**
     * Attention of the slice's queries over all tokens up to their own.
     *
     * @param multiply type in which a GPU multiplies: {@code BF16} rounds q, k, v, the
     *     probabilities and, in the backward, dy and the gradients of scores where they are factors
     *     of a product; scores, softmax, sums and results stay F32. Slices then give the bits of
     *     the whole if they begin at multiples of 16 tokens. Other devices compute in F32 either
     *     way.
     * @param qkv {@code [B*T, 3d]} of the whole micro-batch: row {@code b*T + t}; q, k, v side by
     *     side, head j in columns {@code j*d/h} on of each. Rows up to the slice's end must be
     *     filled.
     * @param y {@code [n, d]} of the unit, heads side by side
     * @param logSumExp {@code [n, h]} of the unit, kept for the backward
     * @param context T, rows of one sequence in {@code qkv}
     * @param blocks the slice: sequences, tokens, first token, grid (query blocks never cross a
     *     grid line)
     */
    void attention(
            DType multiply,
            Tensor qkv,
            Tensor y,
            Tensor logSumExp,
            int heads,
            int context,
            TokenBlocks blocks);

    /**
     * The backward of {@link #attention}, slices in reverse order.
     *
     * @param multiply as in the forward
     * @param dy {@code [n, d]}
     * @param dQkv {@code [B*T, 3d]} of the whole micro-batch: dq of the slice's rows is written, dk
     *     and dv of all rows up to the slice's end accumulate (zero them before the last slice)
     */
    void attentionBackward(
            DType multiply,
            Tensor qkv,
            Tensor y,
            Tensor logSumExp,
            Tensor dy,
            Tensor dQkv,
            int heads,
            int context,
            TokenBlocks blocks);

    /**
     * Goes on with what {@link #attention} began: queries of one sequence to keys that all come
     * before them and that it did not see, as when blocks of keys pass by (ring attention, arXiv
     * 2310.01889). Any number of blocks, one after the other.
     *
     * @param multiply as in {@link #attention}
     * @param q {@code [n, d]}, heads side by side
     * @param keyValues {@code [m, 2d]}: keys, beside them values
     * @param y {@code [n, d]}, the result over the keys so far on entry, over these too on return
     * @param logSumExp {@code [n, h]}, likewise
     */
    void attentionToEarlier(
            DType multiply, Tensor q, Tensor keyValues, Tensor y, Tensor logSumExp, int heads);

    /**
     * The backward of {@link #attentionToEarlier}, blocks in any order.
     *
     * @param multiply as in the forward
     * @param y over all keys, as {@code logSumExp}
     * @param dy {@code [n, d]}
     * @param dq {@code [n, d]}, accumulates
     * @param dKeyValues {@code [m, 2d]}, accumulates
     */
    void attentionToEarlierBackward(
            DType multiply,
            Tensor q,
            Tensor keyValues,
            Tensor y,
            Tensor logSumExp,
            Tensor dy,
            Tensor dq,
            Tensor dKeyValues,
            int heads);

    // ---- loss -------------------------------------------------------------------------------

    /**
     * What a shard of the vocabulary knows of the softmax of each row. Three numbers per row: the
     * largest logit, the sum of {@code exp(logit - largest)}, and the target's logit, or 0 if
     * another shard has the target.
     *
     * @param logits {@code [n, tokens of the shard]}, overwritten by {@code exp(logit - largest)}
     * @param targets I32 {@code [1, n]}, which the host wrote
     * @param range tokens of the logits' columns
     * @param part {@code [1, 3n]}, receives the numbers of row i from {@code 3i} on
     * @param gradient whether a gradient is wanted; without one the logits are left alone
     */
    void softmaxPart(
            Tensor logits, Tensor targets, TokenRange range, Tensor part, boolean gradient);

    /**
     * Cross-entropy of each row, natural log: {@code losses[i] = -log
     * softmax(logits[i])[targets[i]]}, from the {@link #softmaxPart} of all shards, taken in their
     * order: every shard gets the same bits.
     *
     * @param parts {@code [shards, 3n]}
     * @param shard whose logits these are
     * @param logits as {@link #softmaxPart} left them, overwritten by {@code (softmax - onehot) *
     *     gradientScale}; left alone if the scale is 0 (loss only)
     * @param losses {@code [1, n]}
     */
    void crossEntropy(
            Tensor parts,
            int shard,
            Tensor logits,
            Tensor targets,
            TokenRange range,
            Tensor losses,
            float gradientScale);

    // ---- whole tensors ----------------------------------------------------------------------

    /** Sets every element to zero bits. */
    void zero(Tensor x);

    /** {@code y += x}, same shape. */
    void add(Tensor x, Tensor y);

    /** {@code y = x}, same shape; F32 to BF16 and back converts. */
    void copy(Tensor x, Tensor y);

    /**
     * The sum of squares in double precision over fixed blocks of elements, in a fixed order; not
     * finite if and only if an element is not finite (squares are taken in double and cannot
     * overflow).
     */
    double squaredNorm(Tensor x);

    /** {@link #squaredNorm} of each, in their order, with one wait for all of them. */
    default double[] squaredNorms(List<Tensor> tensors) {
        return tensors.stream().mapToDouble(this::squaredNorm).toArray();
    }

    /** Whether no element is NaN or infinite. */
    boolean allFinite(Tensor x);

    /**
     * Same as {@link #allFinite}, for a device that had better not be waited for: it may answer
     * true now and tell the truth by {@link #firstNotFinite}.
     */
    default boolean watchFinite(Tensor x) {
        return allFinite(x);
    }

    /**
     * Waits. Of the tensors {@linkplain #watchFinite watched} since the last call, counted from 0,
     * the first that had a NaN or an infinity and was answered for with true; -1 if none had.
     */
    default int firstNotFinite() {
        return -1;
    }

    /**
     * AdamW with decoupled decay (arXiv 1711.05101, Algorithm 2, the learning rate multiplying the
     * decay):
     *
     * <pre>
     *   g = gradient * gradientScale
     *   w *= 1 - learningRate * decay;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
     *   w -= learningRate / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
     * </pre>
     *
     * The gradient is zeroed for the next step.
     */
    void adamW(Tensor weight, Tensor gradient, Tensor m, Tensor v, AdamWStep step);

    // ---- the host ---------------------------------------------------------------------------

    /**
     * Waits until everything that was asked for is done: the host may then use segments that it
     * holds, and give inputs away. Can be called from any thread.
     *
     * @throws DeviceException if a kernel failed behind its call
     */
    void finish();
}
