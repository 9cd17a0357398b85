package dev.penstock.actors.spi;

/**
 * What a run does, in steps.
 *
 * @param completed training steps already done (a resumed run), 0 for a fresh one
 * @param last the run ends after this step; equal to {@code completed} for an evaluation only
 * @param clipNorm gradients are scaled to at most this global norm; 0 for no clipping
 * @param evaluateEvery evaluate after every so many steps, before the first and at the end, whether
 *     or not the run was resumed on the way; 0 for never
 * @param evaluationBatches held-out batches of one evaluation
 * @param lastEvaluationShare what the last of them has of a full one, above 0 and at most 1
 * @param checkpointEvery save after every so many steps and at the end; 0 for never
 */
public record RunSteps(
        long completed,
        long last,
        double clipNorm,
        int evaluateEvery,
        int evaluationBatches,
        double lastEvaluationShare,
        int checkpointEvery) {

    /** Whose held-out batches are all full. */
    public RunSteps(
            long completed,
            long last,
            double clipNorm,
            int evaluateEvery,
            int evaluationBatches,
            int checkpointEvery) {
        this(completed, last, clipNorm, evaluateEvery, evaluationBatches, 1, checkpointEvery);
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
