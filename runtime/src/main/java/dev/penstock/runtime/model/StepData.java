package dev.penstock.runtime.model;

import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.runtime.data.BatchSource;
import org.jspecify.annotations.Nullable;

/** What a stage needs of a step's data: inputs on the first, targets and losses on the last. */
final class StepData {
    private final BatchShape batch;
    private final BatchSource source;
    private final int firstMicroBatch;

    /** Tokens of a whole sequence, and where this part of it begins. */
    private final int context;

    private final int firstToken;
    private final int[] microBatch;
    private final int[] part;
    private final @Nullable InputTokens inputs;
    private final @Nullable LossLedger ledger;

    StepData(
            BatchSource source,
            GptSettings settings,
            RankPlace place,
            @Nullable InputTokens inputs,
            @Nullable LossLedger ledger) {
        this.batch = settings.batchOfPart();
        this.firstToken = place.context() * batch.context();
        this.context = settings.batch().context();
        this.source = source;
        this.firstMicroBatch = place.data() * batch.microBatches();
        this.inputs = inputs;
        this.ledger = ledger;
        microBatch = new int[batch.sequences() * (context + 1)];
        part = new int[batch.sequences() * (batch.context() + 1)];
    }

    void read(StepKind kind, long step) {
        if (inputs == null && ledger == null) {
            return;
        }
        for (int m = 0; m < batch.microBatches(); m++) {
            source.read(kind, step, firstMicroBatch + m, microBatch);
            for (int b = 0; b < batch.sequences(); b++) {
                System.arraycopy(
                        microBatch,
                        b * (context + 1) + firstToken,
                        part,
                        b * (batch.context() + 1),
                        batch.context() + 1);
            }
            if (inputs != null) {
                inputs.fill(m, part);
            }
            if (ledger != null) {
                ledger.fill(m, part);
            }
        }
    }
}
