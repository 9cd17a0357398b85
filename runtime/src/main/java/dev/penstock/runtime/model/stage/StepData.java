package dev.penstock.runtime.model.stage;

import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.runtime.data.BatchSource;
import dev.penstock.runtime.model.layers.InputTokens;
import dev.penstock.runtime.model.layers.LossLedger;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.PartTokens;
import dev.penstock.runtime.model.shape.PartTokens.Run;
import org.jspecify.annotations.Nullable;

/**
 * The part of a step's data that a stage needs: inputs on the first, targets and losses on the
 * last.
 */
final class StepData {
    private final BatchShape batch;
    private final BatchSource source;
    private final int firstMicroBatch;

    /** The tokens of a whole sequence, and which of them this rank holds. */
    private final int context;

    private final PartTokens held;
    private final int[] microBatch;
    private final int[] part;
    private final @Nullable InputTokens inputs;
    private final @Nullable LossLedger ledger;
    private final int replicas;
    private final int parts;
    private int sequences;

    StepData(
            BatchSource source,
            GptSettings settings,
            RankPlace place,
            PartTokens held,
            @Nullable InputTokens inputs,
            @Nullable LossLedger ledger) {
        this.batch = settings.batchOfPart();
        this.held = held;
        this.context = settings.batch().context();
        this.source = source;
        this.firstMicroBatch = place.data() * batch.microBatches();
        this.replicas = settings.grid().data();
        this.parts = settings.grid().context();
        this.inputs = inputs;
        this.ledger = ledger;
        microBatch = new int[batch.sequences() * (context + 1)];
        part = new int[batch.microBatchRows()];
    }

    void read(StepKind kind, long step) {
        if (inputs == null && ledger == null) {
            return;
        }
        int ofReplica = batch.sequences() * batch.microBatches();
        sequences = source.sequences(kind, step, ofReplica * replicas);
        if (ledger != null) {
            long first = (long) firstMicroBatch * batch.sequences();
            ledger.begin(
                    Math.clamp(sequences - first, 0, ofReplica),
                    (double) tokens() / (replicas * parts));
        }
        for (int m = 0; m < batch.microBatches(); m++) {
            source.read(kind, step, firstMicroBatch + m, microBatch);
            if (inputs != null) {
                inputs.fill(m, held(0));
            }
            if (ledger != null) {
                ledger.fill(m, held(1));
            }
        }
    }

    /**
     * Returns the tokens of the step over all replicas and parts of sequences that actually exist.
     */
    int tokens() {
        return Math.multiplyExact(sequences, context);
    }

    /** Returns the tokens at the given offset from those that this rank holds. */
    private int[] held(int behind) {
        for (int b = 0; b < batch.sequences(); b++) {
            for (Run run : held.runs()) {
                System.arraycopy(
                        microBatch,
                        b * (context + 1) + run.first() + behind,
                        part,
                        b * batch.context() + run.firstHere(),
                        run.tokens());
            }
        }
        return part;
    }
}
