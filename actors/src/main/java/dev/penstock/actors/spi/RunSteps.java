package dev.penstock.actors.spi;

import java.util.List;

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
 */
public record RunSteps(
        long completed,
        long last,
        double clipNorm,
        int evaluateEvery,
        int evaluationBatches,
        List<Double> lastEvaluationShares,
        int checkpointEvery) {
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
                checkpointEvery);
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
