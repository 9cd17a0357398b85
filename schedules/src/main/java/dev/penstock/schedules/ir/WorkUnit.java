package dev.penstock.schedules.ir;

/**
 * One piece of work of a stage: a token slice of a micro-batch.
 *
 * @param stage global (virtual) stage index, 0-based
 * @param microBatch index inside the step, 0-based
 * @param slice token slice inside the sequence, 0-based; always 0 where sequences are not cut
 */
public record WorkUnit(int stage, int microBatch, int slice) {
    public WorkUnit {
        if (stage < 0 || microBatch < 0 || slice < 0) {
            throw new IllegalArgumentException(
                    "a work unit needs indices of 0 or more, got stage %d, micro-batch %d, slice %d"
                            .formatted(stage, microBatch, slice));
        }
    }

    /** The same micro-batch and slice on another stage. */
    public WorkUnit onStage(int otherStage) {
        return new WorkUnit(otherStage, microBatch, slice);
    }
}
