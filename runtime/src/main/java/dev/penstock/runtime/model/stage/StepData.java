package dev.penstock.runtime.model.stage;

import dev.penstock.actors.collective.TensorMesh;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.runtime.data.BatchSource;
import dev.penstock.runtime.model.layers.InputTokens;
import dev.penstock.runtime.model.layers.LossLedger;
import dev.penstock.runtime.model.layers.PackedRows;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.PartTokens;
import dev.penstock.runtime.model.shape.PartTokens.Run;
import dev.penstock.runtime.model.shape.StepShapes;
import org.jspecify.annotations.Nullable;

/**
 * The part of a step's data that a stage needs: inputs on the first, targets and losses on the
 * last, and on all of them the documents that share rows.
 */
final class StepData {
    private final BatchShape batch;
    private final StepShapes shapes;
    private final BatchSource source;
    private final int firstMicroBatch;

    /** The sequences of a micro-batch, of all parts of a mesh together. */
    private final int sequences;

    /** The first of them whose inputs are here, and the first whose targets are. */
    private final int firstInput;

    private final int firstTarget;

    /** The tokens of a whole sequence, and which of them this rank holds. */
    private final int context;

    private final PartTokens held;
    private final int[] microBatch;
    private final int[] part;
    private final @Nullable InputTokens inputs;
    private final @Nullable LossLedger ledger;
    private final @Nullable PackedRows packed;
    private final boolean marked;
    private final byte[] marks;

    /** By micro-batch and sequence, which rows of the data they are. */
    private final int[] rows;

    private final int sequencesOfStep;
    private int counted;

    /**
     * @param shapes receives the sizes of every micro-batch
     * @param packed receives the documents of every micro-batch, if there are several in a row
     */
    StepData(
            StepShapes shapes,
            BatchSource source,
            GptSettings settings,
            RankPlace place,
            PartTokens held,
            @Nullable InputTokens inputs,
            @Nullable LossLedger ledger,
            @Nullable PackedRows packed) {
        this.batch = settings.batchOfPart();
        this.shapes = shapes;
        this.held = held;
        this.context = settings.batch().context();
        this.source = source;
        this.firstMicroBatch = settings.firstMicroBatch(place);
        TensorMesh mesh = settings.grid().mesh();
        this.sequences = settings.batch().sequences();
        this.firstInput = mesh.sequencePart(place.tensor()) * batch.sequences();
        this.firstTarget = mesh.innerSequencePart(place.tensor()) * batch.sequences();
        this.sequencesOfStep = sequences * settings.microBatchesOfStep();
        this.inputs = inputs;
        this.ledger = ledger;
        this.packed = packed;
        marked = source.packed() || source.masked();
        marks = new byte[marked ? sequences * (context + 1) : 0];
        rows = new int[batch.microBatches() * batch.sequences()];
        microBatch = new int[sequences * (context + 1)];
        part = new int[batch.microBatchRows()];
    }

    void read(StepKind kind, long step) {
        for (int m = 0; m < batch.microBatches(); m++) {
            int tokens = source.tokens(kind, step, firstMicroBatch + m, context);
            shapes.set(m, tokens == context ? batch.context() : tokens);
            for (int b = 0; b < batch.sequences(); b++) {
                int row = source.row(kind, step, firstMicroBatch + m, firstInput + b);
                rows[m * batch.sequences() + b] = row;
            }
        }
        if (inputs == null && ledger == null && packed == null) {
            return;
        }
        int existing = source.sequences(kind, step, sequencesOfStep);
        if (ledger != null) {
            counted = counted(kind, step, existing);
            long first = (long) firstMicroBatch * sequences;
            int most = sequences * batch.microBatches();
            ledger.begin(Math.clamp(existing - first, 0, most), Math.max(1, counted));
        }
        for (int m = 0; m < batch.microBatches(); m++) {
            if (marked) {
                source.marks(kind, step, firstMicroBatch + m, marks);
            }
            if (packed != null) {
                for (int b = 0; b < batch.sequences(); b++) {
                    int row = b * (context + 1);
                    packed.fill(m, b, token -> (marks[row + token] & BatchSource.BEGINS) != 0);
                    packed.types(m, b, token -> (marks[row + token] & BatchSource.SECOND) != 0);
                }
            }
            if (inputs == null && ledger == null) {
                continue;
            }
            source.inputs(kind, step, firstMicroBatch + m, microBatch);
            if (inputs != null) {
                inputs.fill(m, held(m, firstInput, 0));
            }
            if (ledger != null) {
                if (source.inPlace()) {
                    source.read(kind, step, firstMicroBatch + m, microBatch);
                }
                hideUncounted();
                ledger.fill(m, held(m, firstTarget, behind()));
            }
        }
    }

    /**
     * Returns how many targets of the step count, over all replicas and parts of sequences that
     * actually exist; at least 1.
     */
    int tokens() {
        return Math.max(1, counted);
    }

    /** Returns which row of the data a sequence is; -1 if none that comes again. */
    int row(int ofMicroBatch, int sequence) {
        return rows[ofMicroBatch * batch.sequences() + sequence];
    }

    private int counted(StepKind kind, long step, int existing) {
        if (!marked) {
            return Math.multiplyExact(existing, context);
        }
        int count = 0;
        for (int first = 0; first < existing; first += sequences) {
            source.marks(kind, step, first / sequences, marks);
            int here = Math.min(sequences, existing - first);
            for (int i = 0; i < here * (context + 1); i++) {
                int target = i % (context + 1) - behind();
                boolean is = target >= 0 && target < context;
                count += is && source.counts(marks[i]) ? 1 : 0;
            }
        }
        return count;
    }

    /** How far behind a token its target stands. */
    private int behind() {
        return source.inPlace() ? 0 : 1;
    }

    /** What is no target is no input any more: those were taken before. */
    private void hideUncounted() {
        for (int i = 0; i < marks.length; i++) {
            microBatch[i] = source.counts(marks[i]) ? microBatch[i] : -1;
        }
    }

    /**
     * Returns the tokens at the given offset from those that this rank holds, of the sequences from
     * the given one on of a micro-batch that has been read.
     */
    private int[] held(int ofMicroBatch, int firstSequence, int behind) {
        int tokens = shapes.of(ofMicroBatch).context();
        for (int b = 0; b < batch.sequences(); b++) {
            for (Run run : held.runs()) {
                System.arraycopy(
                        microBatch,
                        (firstSequence + b) * (context + 1) + run.first() + behind,
                        part,
                        b * tokens + run.firstHere(),
                        Math.min(run.tokens(), tokens));
            }
        }
        return part;
    }
}
