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
    private final int[] microBatch;
    private final @Nullable InputTokens inputs;
    private final @Nullable LossLedger ledger;

    StepData(
            BatchSource source,
            BatchShape batch,
            RankPlace place,
            @Nullable InputTokens inputs,
            @Nullable LossLedger ledger) {
        this.batch = batch;
        this.source = source;
        this.firstMicroBatch = place.data() * batch.microBatches();
        this.inputs = inputs;
        this.ledger = ledger;
        microBatch = new int[batch.sequences() * (batch.context() + 1)];
    }

    void read(StepKind kind, long step) {
        if (inputs == null && ledger == null) {
            return;
        }
        for (int m = 0; m < batch.microBatches(); m++) {
            source.read(kind, step, firstMicroBatch + m, microBatch);
            if (inputs != null) {
                inputs.fill(m, microBatch);
            }
            if (ledger != null) {
                ledger.fill(m, microBatch);
            }
        }
    }
}
