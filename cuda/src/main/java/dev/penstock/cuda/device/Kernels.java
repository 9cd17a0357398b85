package dev.penstock.cuda.device;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The op table of a device. Legend of shapes, all row-major:
 *
 * <pre>
 *   n     rows of a unit: sequences x tokens of the slice, sequence by sequence
 *   T     context: tokens of a whole sequence       B  sequences of the micro-batch
 *   d     model width                        V  vocabulary
 *   h     heads of queries                   g  key heads       k  columns of a head
 * </pre>
 *
 * <p>All tensors are F32 unless said otherwise, or {@link #writesBFloat16} says so. Forward and
 * backward of an op stand together. "accumulates" means that the result is added to what the tensor
 * holds. Kernels run in the order of the calls and may still run when a call returns: later kernels
 * see their results, the host sees them in a {@linkplain DeviceBuffer#segment segment} that it asks
 * for afterwards, or in any after {@link #finish}. No call allocates device memory; scratch is held
 * by the device.
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
     * @param multiply type in which factors are multiplied: {@code F32}, {@code BF16} or, on CPUs
     *     alone, {@code F16} (F32 factors are rounded first; sums stay F32). {@code a} and {@code
     *     b} may themselves be BF16 tensors then.
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
     *
     * @param dy F32, or BF16 where the device {@link #joinsProducts}
     */
    void biasGradient(Tensor dy, Tensor dBias, TokenBlocks blocks);

    /**
     * Whether results that are factors of products may be BF16 tensors, rounded as products round
     * their factors: those of norms, of {@link #swiGlu} and its backward; and whether there are the
     * ops that are named so, such as {@link #geluRounded}.
     */
    default boolean writesBFloat16() {
        return false;
    }

    private static DeviceException writesNone(String op) {
        return new DeviceException(
                op + ": expected a device that writes bf16, got one that keeps all results in F32");
    }

    /**
     * Same as {@link #biasGradient}, and {@code y = dy}.
     *
     * @param y BF16, as {@code dy}
     */
    default void biasGradientRounded(Tensor dy, Tensor dBias, TokenBlocks blocks, Tensor y) {
        throw writesNone("biasGradientRounded");
    }

    /**
     * Whether products do what follows them before their sums reach memory, see {@link #gemmThen};
     * then also gradients that products write or read may be BF16 in {@link #biasGradient}, the
     * backwards of layer norms and those of attention, and logits in {@link #crossEntropyOfRows}.
     */
    default boolean joinsProducts() {
        return false;
    }

    /**
     * {@code c = epilogue(a op(b))}, factors BF16, sums F32.
     *
     * @param a {@code [m, k]}
     * @param c {@code [m, n]}, of the type that the epilogue says
     */
    default void gemmThen(Tensor a, boolean transposeB, Tensor b, Epilogue epilogue, Tensor c) {
        throw new DeviceException(
                "gemmThen: expected a GPU with cublasLt, got a device whose products do nothing else");
    }

    /** {@code y += bias} on every row. */
    void addBias(Tensor y, Tensor bias);

    /**
     * {@code rounded = y + bias} on every row; {@code y} stays as it is.
     *
     * @param rounded BF16, as {@code y}
     */
    default void addBiasRounded(Tensor y, Tensor bias, Tensor rounded) {
        throw writesNone("addBiasRounded");
    }

    /** {@code y = (y + bias) + residual}. */
    void addBiasAndResidual(Tensor y, Tensor bias, Tensor residual);

    // ---- embedding ------------------------------------------------------------------------------

    /**
     * {@code y[row] = table[tokens[row]]}, zeros where another shard has the token; y {@code [n,
     * d]}, tokens I32 {@code [1, n]}, which the host wrote.
     *
     * @param range tokens of the table's rows
     * @param table F32; where the host computes also BF16 or I8
     */
    void embedding(Tensor tokens, TokenRange range, Tensor table, Tensor y);

    /**
     * Scatters {@code dy} into the table's gradient, rows in the order of {@code blocks}; those of
     * other shards' tokens are left out.
     */
    void embeddingBackward(
            Tensor dy, Tensor tokens, TokenRange range, Tensor dTable, TokenBlocks blocks);

    // ---- norms ------------------------------------------------------------------------------

    /**
     * {@code y = (x - mean) * rstd * gain + bias} with {@code rstd = (variance + epsilon)^-1/2},
     * biased variance; keeps mean and rstd, each {@code [1, n]}.
     */
    void layerNorm(
            Tensor x, Tensor gain, Tensor bias, Tensor y, Tensor mean, Tensor rstd, double epsilon);

    /**
     * {@code dx +=} the input gradient (the residual branch already lies in dx).
     *
     * @param dy F32, or BF16 where the device {@link #joinsProducts}, as in the other backwards
     */
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

    /**
     * {@link #layerNormBackwardInput} and {@link #layerNormBackwardWeight} of the same rows, with
     * their bits.
     *
     * @param dx not dy
     */
    default void layerNormBackward(
            Tensor dy,
            Tensor x,
            Tensor gain,
            Tensor mean,
            Tensor rstd,
            Tensor dx,
            Tensor dGain,
            Tensor dBias,
            TokenBlocks blocks) {
        layerNormBackwardWeight(dy, x, mean, rstd, dGain, dBias, blocks);
        layerNormBackwardInput(dy, x, gain, mean, rstd, dx);
    }

    /**
     * What a layer norm of rows whose columns several shards divide has to know of this shard's, of
     * each row two numbers side by side: the average, and the sum of the squared distances from it.
     *
     * @param part {@code [1, 2n]}
     */
    default void layerNormPart(Tensor x, Tensor part) {
        throw dividesNone("layerNormPart");
    }

    /**
     * {@link #layerNorm} of this shard's columns from the {@link #layerNormPart} of all shards,
     * which have as many each, taken in their order: every shard gets the same moments.
     *
     * @param parts {@code [shards, 2n]}
     */
    default void layerNormOfParts(
            Tensor parts,
            Tensor x,
            Tensor gain,
            Tensor bias,
            Tensor y,
            Tensor mean,
            Tensor rstd,
            double epsilon) {
        throw dividesNone("layerNormOfParts");
    }

    /**
     * The averages of {@code g} and {@code g * h} over this shard's columns, with {@code g = dy *
     * gain} and {@code h = (x - mean) * rstd}: of each row two numbers side by side.
     *
     * @param part {@code [1, 2n]}
     */
    default void layerNormBackwardPart(
            Tensor dy, Tensor x, Tensor gain, Tensor mean, Tensor rstd, Tensor part) {
        throw dividesNone("layerNormBackwardPart");
    }

    /**
     * {@link #layerNormBackwardInput} of this shard's columns from the {@link
     * #layerNormBackwardPart} of all shards.
     *
     * @param parts {@code [shards, 2n]}
     */
    default void layerNormBackwardOfParts(
            Tensor parts, Tensor dy, Tensor x, Tensor gain, Tensor mean, Tensor rstd, Tensor dx) {
        throw dividesNone("layerNormBackwardOfParts");
    }

    private static DeviceException dividesNone(String op) {
        return new DeviceException(
                op + ": expected a CPU, got a device whose norms have whole rows alone");
    }

    /**
     * {@code y = x * r * gain} with {@code r = (average of x^2 + epsilon)^-1/2}: of whole rows, or
     * of every head in a row on its own (w heads of k columns, all with the same gain).
     *
     * @param x {@code [n, w*k]}, with any stride: also some columns of queries, keys and values
     * @param gain {@code [1, k]}; whole rows where it is as wide as x
     * @param y {@code [n, w*k]}, not x, which the backward needs
     * @param r {@code [1, n*w]}, kept for the backward: that of row i and head a at {@code i*w + a}
     */
    void rmsNorm(Tensor x, Tensor gain, Tensor y, Tensor r, double epsilon);

    /**
     * The input gradient of {@link #rmsNorm}.
     *
     * @param dx {@code [n, w*k]}
     * @param accumulate whether it is added to dx (where the residual branch lies already) or
     *     overwrites it; then dx may be dy itself
     */
    void rmsNormBackwardInput(
            Tensor dy, Tensor x, Tensor gain, Tensor r, Tensor dx, boolean accumulate);

    /**
     * {@code dGain += sum of dy * x * r}, rows chained in the order of {@code blocks}, in a row
     * head by head.
     */
    void rmsNormBackwardWeight(Tensor dy, Tensor x, Tensor r, Tensor dGain, TokenBlocks blocks);

    // ---- GELU and gates ---------------------------------------------------------------------

    /** {@code pre += bias; y = gelu(pre)}; the backward needs {@code pre}. */
    void biasGelu(Tensor pre, Tensor bias, Tensor y, Gelu form);

    /** {@code dy *= gelu'(pre)} in place. */
    void geluBackward(Tensor pre, Tensor dy, Gelu form);

    /**
     * {@code y = gelu(pre + bias)}; {@code pre} stays as it is, and {@link #geluBackwardRounded}
     * needs it so.
     *
     * @param y BF16, as {@code pre}
     */
    default void geluRounded(Tensor pre, Tensor bias, Tensor y, Gelu form) {
        throw writesNone("geluRounded");
    }

    /**
     * {@code dPre = dy * gelu'(pre + bias)}, and the {@link #biasGradient} of what is not rounded
     * yet.
     *
     * @param dPre BF16, as {@code pre}
     * @param dBias {@code [1, n]}, accumulates; null if it is not wanted
     */
    default void geluBackwardRounded(
            Tensor pre,
            Tensor bias,
            Tensor dy,
            Gelu form,
            Tensor dPre,
            @Nullable Tensor dBias,
            TokenBlocks blocks) {
        throw writesNone("geluBackwardRounded");
    }

    /**
     * SwiGLU: {@code z = silu(a) * b}, {@code silu(a) = a / (1 + exp(-a))}.
     *
     * @param gated {@code [n, 2m]}: a, beside it b
     * @param z {@code [n, m]}
     */
    void swiGlu(Tensor gated, Tensor z);

    /**
     * The backward of {@link #swiGlu}.
     *
     * @param dz {@code [n, m]}
     * @param dGated {@code [n, 2m]}, written: da, beside it db; may be {@code gated} itself
     */
    void swiGluBackward(Tensor gated, Tensor dz, Tensor dGated);

    /**
     * GEGLU: {@code z = gelu(a) * b} with the exact GELU.
     *
     * @param gated {@code [n, 2m]}: a, beside it b
     * @param z {@code [n, m]}
     */
    default void geGlu(Tensor gated, Tensor z) {
        throw isNotThere("geGlu");
    }

    /**
     * The backward of {@link #geGlu}.
     *
     * @param dz {@code [n, m]}; overwritten, what it holds then means nothing
     * @param dGated {@code [n, 2m]}, written: da, beside it db; may be {@code gated} itself
     */
    default void geGluBackward(Tensor gated, Tensor dz, Tensor dGated) {
        throw isNotThere("geGluBackward");
    }

    /** {@code y = tanh(y + bias)}, in place. */
    default void biasTanh(Tensor y, Tensor bias) {
        throw isNotThere("biasTanh");
    }

    /**
     * {@code dy *= 1 - y^2} in place, the backward of {@link #biasTanh}.
     *
     * @param y what it returned
     */
    default void tanhBackward(Tensor y, Tensor dy) {
        throw isNotThere("tanhBackward");
    }

    private static DeviceException isNotThere(String op) {
        return new DeviceException(op + ": expected a CPU, which has this op, got another device");
    }

    // ---- dropout ----------------------------------------------------------------------------

    /**
     * Dropout: {@code y = x * scale} where the mask keeps an element, else 0. It is its own
     * backward, with the same keys and mask. Parts of a matrix have the bits of the whole.
     *
     * @param x F32; BF16 where the device {@link #writesBFloat16}
     * @param rowKeys I32 {@code [n, 2]}, dense: of each row a key of 64 random bits, lower half
     *     first
     * @param y as x, and x itself if need be
     * @param accumulate whether the result is added to y; of F32 only
     */
    void dropout(Tensor x, Tensor rowKeys, DropoutMask mask, Tensor y, boolean accumulate);

    // ---- rotary positions -------------------------------------------------------------------

    /**
     * Turns heads by the angles of their positions, in place (RoPE, arXiv 2104.09864, halves as
     * pairs): with {@code x1} the first half of a head's columns and {@code x2} the second,
     *
     * <pre>
     *   (x1, x2) = (x1 cos - x2 sin, x2 cos + x1 sin)
     * </pre>
     *
     * @param x {@code [n, w*k]}: any number of heads side by side, such as the queries and keys in
     *     rows of queries, keys and values
     * @param turns {@code [p, k]}, p a divisor of n: cosines in the first half of the columns,
     *     sines in the second; row i of x is turned by row {@code i % p}. For a slice of sequences,
     *     the table's rows from its first token on, as many as its tokens
     * @param back whether to turn by the negative angles: the backward
     */
    void rotate(Tensor x, Tensor turns, boolean back);

    /**
     * Same as {@link #rotate} with neighbours as pairs: {@code x1} the columns 0, 2, 4, .. of a
     * head and {@code x2} the columns 1, 3, 5, ..
     */
    default void rotateNeighbours(Tensor x, Tensor turns, boolean back) {
        throw isNotThere("rotateNeighbours");
    }

    // ---- causal self-attention over a slice -------------------------------------------------

    /**
     * Attention of the slice's queries over all tokens up to their own.
     *
     * @param multiply type in which a GPU multiplies: {@code BF16} rounds q, k, v, the
     *     probabilities and, in the backward, dy and the gradients of scores where they are factors
     *     of a product; scores, softmax, sums and results stay F32. Slices then give the bits of
     *     the whole if they begin at multiples of 16 tokens. Other devices compute in F32 either
     *     way.
     * @param qkv {@code [B*T, (h+2g)k]} of the whole micro-batch: row {@code b*T + t}; may be BF16
     *     where factors are multiplied so and the device {@link #writesBFloat16}; q, k, v side by
     *     side, in each the heads side by side. Rows up to the slice's end must be filled.
     * @param y {@code [n, h*k]} of the unit, heads side by side
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
            AttentionShape shape,
            int context,
            TokenBlocks blocks);

    /**
     * The backward of {@link #attention}, slices in reverse order. To a key head's gradients its
     * heads of queries add in a fixed order, whatever the slices.
     *
     * @param multiply as in the forward
     * @param dy {@code [n, h*k]}; may be BF16 as dQkv, where qkv is and the device {@link
     *     #joinsProducts}
     * @param dQkv {@code [B*T, (h+2g)k]} of the whole micro-batch: dq of the slice's rows is
     *     written, dk and dv of all rows up to the slice's end accumulate (zero them before the
     *     last slice)
     */
    void attentionBackward(
            DType multiply,
            Tensor qkv,
            Tensor y,
            Tensor logSumExp,
            Tensor dy,
            Tensor dQkv,
            AttentionShape shape,
            int context,
            TokenBlocks blocks);

    /**
     * Same as {@link #attentionBackward} for units of whole sequences: all of dQkv is written,
     * whatever it held.
     *
     * @param blocks all tokens, {@code context} of each sequence
     */
    default void wholeAttentionBackward(
            DType multiply,
            Tensor qkv,
            Tensor y,
            Tensor logSumExp,
            Tensor dy,
            Tensor dQkv,
            AttentionShape shape,
            int context,
            TokenBlocks blocks) {
        zero(dQkv);
        attentionBackward(multiply, qkv, y, logSumExp, dy, dQkv, shape, context, blocks);
    }

    /**
     * Goes on with what {@link #attention} began: queries of one sequence to keys that all come
     * before them and that it did not see, as when blocks of keys pass by (ring attention, arXiv
     * 2310.01889). Any number of blocks, one after the other. A query whose window begins after the
     * block keeps what it has.
     *
     * @param multiply as in {@link #attention}
     * @param q {@code [n, h*k]}, heads side by side
     * @param keyValues {@code [m, 2gk]}: keys, beside them values
     * @param y {@code [n, h*k]}, the result over the keys so far on entry, over these too on return
     * @param logSumExp {@code [n, h]}, likewise
     * @param keys where they lie
     */
    void attentionToEarlier(
            DType multiply,
            Tensor q,
            Tensor keyValues,
            Tensor y,
            Tensor logSumExp,
            EarlierKeys keys);

    /**
     * The backward of {@link #attentionToEarlier}, blocks in any order.
     *
     * @param multiply as in the forward
     * @param y over all keys, as {@code logSumExp}
     * @param dy {@code [n, h*k]}
     * @param dq {@code [n, h*k]}, accumulates
     * @param dKeyValues {@code [m, 2gk]}, accumulates
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
            EarlierKeys keys);

    // ---- retention over a slice -------------------------------------------------------------

    /**
     * The states after the chunks of a slice (Sun et al., arXiv 2307.08621, section 2.3). A state
     * is {@code R [n, m]} for each head, all that is remembered of the tokens before; a chunk is
     * what {@link TokenBlocks} calls a block, so that slices on the grid have the chunks of the
     * whole. Over a chunk of L tokens, with decay g:
     *
     * <pre>
     *   R' = g^L R + sum over j of g^(L-1-j) k_j^T v_j
     * </pre>
     *
     * @param qkv as {@link RetentionShape} says, {@code [B*T, columns]} of the whole micro-batch:
     *     row {@code b*T + t}
     * @param states {@code [(chunks + 1) * B, h*n*m]}, dense: row {@code c*B + b} is the state of
     *     sequence b before the slice's chunk c, row {@code chunks*B + b} that after the last. The
     *     first B rows are read (zeros before a sequence's first token), the others written
     * @param context rows of one sequence in {@code qkv}: T, or as many as the slice has tokens
     *     where the slice's rows are all there is
     * @param blocks the slice
     */
    default void retentionStates(
            Tensor qkv, Tensor states, RetentionShape shape, int context, TokenBlocks blocks) {
        throw isNotThere("retentionStates");
    }

    /**
     * Retention of the slice's queries over all tokens up to their own, from the states of {@link
     * #retentionStates}: with s the {@link RetentionShape#scale}, of the query at position t, i-th
     * of its chunk,
     *
     * <pre>
     *   y_t = s / sqrt(1 + g + .. + g^t) * (sum over j up to i of g^(i-j) (q_t . k_j) v_j  +  g^(i+1) q_t R)
     * </pre>
     *
     * @param states before each chunk, as above; not changed
     * @param y {@code [n, h*m]} of the unit, heads side by side
     */
    default void retention(
            Tensor qkv,
            Tensor states,
            Tensor y,
            RetentionShape shape,
            int context,
            TokenBlocks blocks) {
        throw isNotThere("retention");
    }

    /**
     * The backward of {@link #retention} and {@link #retentionStates}, slices in reverse order.
     *
     * @param states on entry as the forward left them, but for the last B rows, which hold the
     *     gradient of the state after the slice (zeros behind a sequence's last token). On return
     *     each row holds the gradient of the state that it held
     * @param dy {@code [n, h*m]}
     * @param dQkv as {@code qkv}: dq, dk and dv of the slice's rows are written, gates left alone
     */
    default void retentionBackward(
            Tensor qkv,
            Tensor states,
            Tensor dy,
            Tensor dQkv,
            RetentionShape shape,
            int context,
            TokenBlocks blocks) {
        throw isNotThere("retentionBackward");
    }

    /**
     * Of {@link #retentionBackward} the gradient of the state alone: with f the factor of y,
     *
     * <pre>
     *   dR = g^L dR' + sum over i of f_i g^(i+1) q_i^T dy_i
     * </pre>
     *
     * @param gradient {@code [B, h*n*m]}, dense: on entry that of the state after the slice, on
     *     return that of the state before it
     * @param dy {@code [n, h*m]}
     */
    default void retentionStateGradient(
            Tensor qkv,
            Tensor gradient,
            Tensor dy,
            RetentionShape shape,
            int context,
            TokenBlocks blocks) {
        throw isNotThere("retentionStateGradient");
    }

    /**
     * {@code y = silu(gate) * x * r} with {@code r = (average of x^2 + epsilon)^-1/2} of each head
     * of a row on its own: the norm without gains and the gate behind retention.
     *
     * @param x {@code [n, h*m]}
     * @param gate {@code [n, h*m]}; null: 1 in place of silu(gate)
     * @param y {@code [n, h*m]}, not x, which the backward needs
     * @param r {@code [n, h]}, kept for the backward
     */
    default void gatedHeadNorm(
            Tensor x, @Nullable Tensor gate, Tensor y, Tensor r, double epsilon) {
        throw isNotThere("gatedHeadNorm");
    }

    /**
     * The backward of {@link #gatedHeadNorm}.
     *
     * @param dx {@code [n, h*m]}, written; may be dy itself
     * @param dGate {@code [n, h*m]}, written; null as {@code gate}
     */
    default void gatedHeadNormBackward(
            Tensor dy,
            Tensor x,
            @Nullable Tensor gate,
            Tensor r,
            Tensor dx,
            @Nullable Tensor dGate) {
        throw isNotThere("gatedHeadNormBackward");
    }

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

    /**
     * {@link #softmaxPart} and {@link #crossEntropy} of logits of the whole vocabulary in one pass,
     * in an order of sums of its own.
     *
     * @param logits F32, or BF16 where the device {@link #joinsProducts}
     * @param gradientScale 0 for losses alone
     * @param dLogits {@code [n, V]}: the logits themselves, which become their gradient; or BF16
     *     rows that begin where those of the logits do
     */
    default void crossEntropyOfRows(
            Tensor logits, Tensor targets, Tensor losses, float gradientScale, Tensor dLogits) {
        throw writesNone("crossEntropyOfRows");
    }

    // ---- codecs of the wire -----------------------------------------------------------------

    /**
     * Codes every row by itself.
     *
     * @param x F32 {@code [n, d]}
     * @param coded I32 {@code [n, codec.words(d)]}; bits that belong to no element become 0
     */
    void encode(RowCodec codec, Tensor x, Tensor coded);

    /**
     * Turns coded rows into floats: of scaled ones {@code element * scale}, rounded once. Elements
     * that did not travel become 0.
     *
     * @param coded as {@link #encode} wrote it, perhaps on another device
     * @param x F32 {@code [n, d]}
     */
    void decode(RowCodec codec, Tensor coded, Tensor x);

    // ---- exact sums of gradients ------------------------------------------------------------

    /**
     * Takes a gradient into an exact sum and clears it: {@code sum = integer of gradient}, or
     * {@code sum += integer of gradient}, as {@link FixedPoint} has it; {@code gradient = 0}.
     *
     * <p>Counts as one tensor that is {@linkplain #watchFinite watched}. Where an element is NaN or
     * beyond the limit, both tensors are undefined afterwards.
     *
     * @param gradient F32, dense
     * @param sum I64, dense, of the same shape
     * @param limit the largest magnitude of an element
     * @param accumulate whether it is added to the sum, or begins it
     * @return whether all elements are within the limit; a device that had better not be waited for
     *     may answer true now and tell the truth by {@link #firstNotFinite}
     */
    boolean foldGradient(Tensor gradient, Tensor sum, float limit, boolean accumulate);

    /**
     * {@code gradient = the nearest F32 of sum}; the sum stays.
     *
     * @param sum I64, dense
     * @param gradient F32, dense, of the same shape
     */
    void unfoldGradient(Tensor sum, Tensor gradient);

    // ---- whole tensors ----------------------------------------------------------------------

    /** Sets every element to zero bits. */
    void zero(Tensor x);

    /** {@code y += x}, same shape; both F32 or both I64. */
    void add(Tensor x, Tensor y);

    /** {@code y -= x}, same shape. */
    void subtract(Tensor x, Tensor y);

    /**
     * {@code y = a x + b y}, same shape, F32: {@code b y} is rounded, and then the sum, once. With
     * {@code b} = 0 a finite {@code y} is forgotten.
     */
    void blend(float a, Tensor x, float b, Tensor y);

    /**
     * {@code y = x}, same shape; F32 to BF16 and back, and where the host computes F32 to F16 and
     * back and F32 to I8, converts; I64 to I64.
     */
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
     * Same as {@link #watchFinite} of a tensor that is left alone or only added to until {@link
     * #firstNotFinite}: it may be looked at no sooner.
     */
    default boolean watchFiniteLater(Tensor x) {
        return watchFinite(x);
    }

    /** Forgets what is {@linkplain #watchFinite watched}. */
    default void watchNone() {
        var _ = firstNotFinite();
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
     * The gradient is zeroed for the next step. Moments are F32; where the host computes also
     * {@code m} {@link DType#DYNAMIC8} and {@code v} {@link DType#DYNAMIC8_POSITIVE} of a weight
     * that is one row: they are decoded, updated in F32, which is what the weight sees, and coded
     * again.
     */
    void adamW(Tensor weight, Tensor gradient, Tensor m, Tensor v, AdamWStep step);

    /**
     * {@link #adamW(Tensor, Tensor, Tensor, Tensor, AdamWStep) AdamW} of each, with the same bits,
     * and {@code rounded = weight}.
     */
    default void adamW(List<AdamWParameter> parameters, AdamWStep step) {
        AdamWStep steady = step.withoutDecay();
        for (AdamWParameter p : parameters) {
            adamW(p.weight(), p.gradient(), p.m(), p.v(), p.decays() ? step : steady);
            Tensor rounded = p.rounded();
            if (rounded != null) {
                copy(p.weight(), rounded);
            }
        }
    }

    // ---- the host ---------------------------------------------------------------------------

    /**
     * Waits until everything that was asked for is done: the host may then use segments that it
     * holds, and give inputs away. Can be called from any thread.
     *
     * @throws DeviceException if a kernel failed behind its call
     */
    void finish();
}
