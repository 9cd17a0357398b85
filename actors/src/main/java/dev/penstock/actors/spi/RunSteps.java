package dev.penstock.actors.spi;

import dev.penstock.actors.precision.LossScaler;
import java.util.List;
import java.util.Optional;

/**
 * What a run does, in steps.
 *
 * @param completed training steps already done (a resumed run), 0 for a fresh one
 * @param last the run ends after this step; equal to {@code completed} for an evaluation only
 * @param clipNorm gradients are scaled to at most this global norm; 0 for no clipping
 * @param evaluateEvery evaluate after every so many steps, before the first and at the end, whether
 *     or not the run was resumed on the way; 0 for never
 * @param evaluationBatches held-out batches of one evaluation
 * @param lastEvaluationShares what the last of them count of a full one, from 0 to 1 and not all 0;
 *     those before are full
 * @param checkpointEvery save after every so many steps and at the end; 0 for never
 * @param scaler of the loss, after {@code completed} steps; empty if the loss is not scaled
 */
public record RunSteps(
        long completed,
        long last,
        double clipNorm,
        int evaluateEvery,
        int evaluationBatches,
        List<Double> lastEvaluationShares,
        int checkpointEvery,
        Optional<LossScaler> scaler) {
    public RunSteps {
        lastEvaluationShares = List.copyOf(lastEvaluationShares);
    }

    /** Whose held-out batches are all full. */
    public RunSteps(
            long completed,
            long last,
            double clipNorm,
            int evaluateEvery,
            int evaluationBatches,
            int checkpointEvery) {
        this(
                completed,
                last,
                clipNorm,
                evaluateEvery,
                evaluationBatches,
                List.of(),
                checkpointEvery,
                Optional.empty());
    }

    /** The same of a run whose loss is scaled so. */
    public RunSteps scaling(LossScaler loss) {
        return new RunSteps(
                completed,
                last,
                clipNorm,
                evaluateEvery,
                evaluationBatches,
                lastEvaluationShares,
                checkpointEvery,
                Optional.of(loss));
    }

    /** Whether an evaluation is due after this many steps. */
    public boolean evaluatesAfter(long step) {
        return evaluateEvery > 0
                && evaluationBatches > 0
                && (step == 0 || step == last || step % evaluateEvery == 0);
    }

    /** Whether a checkpoint is due after this many steps. */
    public boolean savesAfter(long step) {
        return checkpointEvery > 0
                && step > completed
                && (step == last || step % checkpointEvery == 0);
    }
}
