package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.cuda.device.TokenRange;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.GradientSum;
import dev.penstock.runtime.model.shape.HeadChunk;
import dev.penstock.runtime.model.shape.ShardShape;
import dev.penstock.runtime.model.shape.StepShapes;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.BitSet;
import java.util.OptionalDouble;

/**
 * Targets and losses of every token of a step, in the order (micro-batch, sequence, token) whatever
 * the slicing, so that the mean does not depend on the order of execution.
 */
public final class LossLedger {
    private static final String PLACE = "loss";

    /** The integer of 1 in an exact mean. */
    private static final double ONE = 0x1p36;

    private final StepShapes shapes;
    private final Tensor targets;
    private final Tensor losses;

    /** Three numbers for every row of a chunk and every shard of the vocabulary. */
    private final Tensor parts;

    private final TokenRange range;
    private final int shard;

    /** Those of the targets that do not count. */
    private final BitSet uncounted = new BitSet();

    /** Those of the targets that were the likeliest; empty unless heads classify. */
    private final BitSet right = new BitSet();

    private final boolean classifies;

    /** The micro-batches whose losses are here. */
    private final BitSet computed = new BitSet();

    /** The sequences of a micro-batch on all shards, and the first of them that is here. */
    private final int ofMicroBatch;

    private final int firstSequence;
    private int sequences;
    private long counted;
    private int ledgers = 1;

    /** Whether the mean is exact. */
    private final boolean exact;

    /**
     * @param shapes of the current step
     * @param sum whether the mean of all ledgers must not depend on which micro-batches they hold
     */
    public LossLedger(DeviceScope scope, ShardShape shape, StepShapes shapes, GradientSum sum) {
        this.shapes = shapes;
        exact = sum == GradientSum.FIXED_POINT;
        BatchShape batch = shapes.whole();
        classifies = shape.model().classifies();
        range = shape.outputRange();
        shard = shape.part();
        ofMicroBatch = batch.sequences() * shape.mesh().sequenceParts();
        firstSequence = shape.mesh().innerSequencePart(shape.index()) * batch.sequences();
        targets = scope.tensor("targets", DType.I32, 1, batch.tokensPerStep());
        losses = scope.tensor("losses", DType.F32, 1, batch.tokensPerStep());
        parts =
                scope.tensor(
                        "softmax of all shards",
                        DType.F32,
                        shape.parts(),
                        TensorShards.gatheredColumns(3 * LossHead.logitsRows(shape, batch)));
    }

    /**
     * Says how many ledgers there are: the mean is over an even share of the tokens, so that the
     * mean of all ledgers' means is the mean over all tokens.
     */
    public void share(int among) {
        ledgers = among;
    }

    /**
     * A step begins.
     *
     * @param here number of sequences of these micro-batches that exist, the first ones, on all
     *     shards of a mesh together
     * @param tokens the counted targets of all replicas and parts
     */
    public void begin(int here, long tokens) {
        sequences = here;
        counted = tokens;
        computed.clear();
        right.clear();
    }

    private boolean isHere(int microBatch, HeadChunk chunk, int b) {
        int sequence = firstSequence + chunk.firstSequence() + b;
        return microBatch * ofMicroBatch + sequence < sequences;
    }

    /**
     * Takes the targets of a micro-batch.
     *
     * @param tokens {@code [B][T]}; what is below 0 does not count: it has no loss and no gradient
     */
    public void fill(int microBatch, int[] tokens) {
        int first = index(microBatch, 0, 0);
        int rows = shapes.of(microBatch).microBatchRows();
        for (int i = 0; i < rows; i++) {
            uncounted.set(first + i, tokens[i] < 0);
        }
        targets.columns(first, rows)
                .writeIndices(MemorySegment.ofArray(tokens).asSlice(0, 4L * rows));
    }

    /**
     * Computes the losses of a chunk of a unit; logits become their gradient. Sequences that do not
     * exist have none, and neither have targets that do not count.
     *
     * @return the gradient as products read it
     */
    Tensor crossEntropy(
            Compute compute, Tensor logits, int microBatch, HeadChunk chunk, float gradientScale) {
        computed.set(microBatch);
        if (compute.multiply() == DType.BF16
                && compute.kernels().writesBFloat16()
                && parts.rows() == 1) {
            return ofRows(compute, logits, microBatch, chunk, gradientScale);
        }
        Tensor ofChunk = parts(chunk.rows());
        Tensor own = ofChunk.rows(shard, 1);
        eachRun(
                microBatch,
                chunk,
                (first, index, rows, counted) -> {
                    if (counted) {
                        compute.kernels()
                                .softmaxPart(
                                        logits.rows(first, rows),
                                        targets.columns(index, rows),
                                        range,
                                        numbers(own, first, rows),
                                        gradientScale != 0);
                    }
                });
        compute.shards().show(ofChunk);
        eachRun(
                microBatch,
                chunk,
                (first, index, rows, counted) -> {
                    Tensor ofRun = losses.columns(index, rows);
                    if (counted && classifies) {
                        compare(ofChunk, first, index, rows);
                    }
                    if (!counted) {
                        compute.kernels().zero(ofRun);
                        compute.kernels().zero(logits.rows(first, rows));
                        return;
                    }
                    compute.kernels()
                            .crossEntropy(
                                    numbers(ofChunk, first, rows),
                                    shard,
                                    logits.rows(first, rows),
                                    targets.columns(index, rows),
                                    range,
                                    ofRun,
                                    gradientScale);
                    compute.guard().check(ofRun, PLACE);
                });
        return logits;
    }

    /** Notes which targets no class is likelier than. */
    private void compare(Tensor ofChunk, int first, int index, int rows) {
        MemorySegment numbers = ofChunk.contents();
        for (int row = 0; row < rows; row++) {
            float largest = Float.NEGATIVE_INFINITY;
            float target = 0; // one shard has it, and the others say 0
            for (int each = 0; each < ofChunk.rows(); each++) {
                long at = (long) each * ofChunk.columns() + 3L * (first + row);
                largest = Math.max(largest, numbers.getAtIndex(ValueLayout.JAVA_FLOAT, at));
                target += numbers.getAtIndex(ValueLayout.JAVA_FLOAT, at + 2);
            }
            right.set(index + row, target >= largest);
        }
    }

    /** Of a shard that has the whole vocabulary, on a device that does it in one pass. */
    private Tensor ofRows(
            Compute compute, Tensor logits, int microBatch, HeadChunk chunk, float gradientScale) {
        boolean roundsLater = compute.rounds() && logits.type() == DType.F32;
        Tensor gradient = roundsLater ? inRowsOf(logits) : logits;
        eachRun(
                microBatch,
                chunk,
                (first, index, rows, counted) -> {
                    Tensor ofRun = losses.columns(index, rows);
                    if (!counted) {
                        compute.kernels().zero(ofRun);
                        compute.kernels().zero(gradient.rows(first, rows));
                        return;
                    }
                    compute.kernels()
                            .crossEntropyOfRows(
                                    logits.rows(first, rows),
                                    targets.columns(index, rows),
                                    ofRun,
                                    gradientScale,
                                    gradient.rows(first, rows));
                    compute.guard().check(ofRun, PLACE);
                });
        return gradient;
    }

    /** Returns BF16 rows, each at the start of a row of these. */
    static Tensor inRowsOf(Tensor logits) {
        return new Tensor(
                logits.buffer(),
                logits.offsetBytes(),
                DType.BF16,
                logits.rows(),
                logits.columns(),
                2 * logits.stride());
    }

    private interface RunWork {
        /**
         * @param first row of the chunk
         * @param index of its target in the step
         * @param counted whether all of these rows count, or none
         */
        void accept(int first, int index, int rows, boolean counted);
    }

    private void eachRun(int microBatch, HeadChunk chunk, RunWork work) {
        TokenBlocks blocks = chunk.blocks();
        for (int b = 0; b < blocks.sequences(); b++) {
            int start = index(microBatch, chunk.firstSequence() + b, blocks.firstToken());
            int end = start + blocks.tokens();
            int chunkRow = b * blocks.tokens() - start;
            for (int from = start; from < end; ) {
                boolean counted = isHere(microBatch, chunk, b) && !uncounted.get(from);
                int to = end;
                if (isHere(microBatch, chunk, b)) {
                    int change =
                            counted ? uncounted.nextSetBit(from) : uncounted.nextClearBit(from);
                    to = change < 0 ? end : Math.min(end, change);
                }
                work.accept(chunkRow + from, from, to - from, counted);
                from = to;
            }
        }
    }

    /** Returns dense rows, one per shard, for three numbers of each row of logits. */
    private Tensor parts(int rows) {
        int columns = TensorShards.gatheredColumns(3 * rows);
        return new Tensor(parts.buffer(), 0, DType.F32, parts.rows(), columns, columns);
    }

    private static Tensor numbers(Tensor parts, int first, int rows) {
        return parts.columns(3 * first, 3 * rows);
    }

    /**
     * Returns the mean loss of the tokens that count, see {@link #share}. If it is exact, what each
     * micro-batch adds to the mean over all tokens is a multiple of 2^-36, so that sums of these
     * need no rounding.
     */
    public double mean() {
        MemorySegment segment = losses.contents();
        double sum = 0;
        double shares = 0;
        for (int m = computed.nextSetBit(0); m >= 0; m = computed.nextSetBit(m + 1)) {
            sum = exact ? 0 : sum;
            int first = index(m, 0, 0);
            for (int i = first; i < first + shapes.of(m).microBatchRows(); i++) {
                sum += segment.getAtIndex(ValueLayout.JAVA_FLOAT, i);
            }
            shares += Math.rint(sum / counted * ONE);
        }
        return exact ? shares / ONE * ledgers : sum / ((double) counted / ledgers);
    }

    /**
     * Returns the share of the targets that count which no class is likelier than, see {@link
     * #share}; empty unless heads classify.
     */
    public OptionalDouble accuracy() {
        if (!classifies) {
            return OptionalDouble.empty();
        }
        long sum = 0;
        for (int m = computed.nextSetBit(0); m >= 0; m = computed.nextSetBit(m + 1)) {
            int first = index(m, 0, 0);
            sum += right.get(first, first + shapes.of(m).microBatchRows()).cardinality();
        }
        return OptionalDouble.of(sum / ((double) counted / ledgers));
    }

    private int index(int microBatch, int sequence, int token) {
        return microBatch * shapes.whole().microBatchRows()
                + sequence * shapes.of(microBatch).context()
                + token;
    }
}
