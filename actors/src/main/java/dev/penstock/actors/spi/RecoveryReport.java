package dev.penstock.actors.spi;

import java.util.List;

/**
 * A recovery that succeeded; told before the first step that follows it.
 *
 * @param cause what happened, in a sentence
 * @param epoch that the run is in now
 * @param replaced ranks that died and live again, or whose work others do, rising; empty if only
 *     links were lost
 * @param restart what the run continued from
 * @param detectNanos from the last sign of life of what died to the start of the recovery; 0 where
 *     that is not known
 * @param resumeNanos from the start of the recovery until every rank was open again
 * @param stepsLost committed steps that are done again
 * @param fromStep training steps that are done now; the next one is {@code fromStep + 1}
 */
public record RecoveryReport(
        String cause,
        int epoch,
        List<Integer> replaced,
        Restart restart,
        long detectNanos,
        long resumeNanos,
        long stepsLost,
        long fromStep) {
    /** What a run continues from. */
    public enum Restart {
        /** Everything was in memory still. */
        MEMORY,
        /** The same; step {@code fromStep} was not finite, so nothing of it was applied. */
        SKIPPED,
        /** The dead ranks' state came from mirrors. */
        MIRROR,
        /** All ranks went back to a checkpoint, or to where the run began. */
        CHECKPOINT
    }

    public RecoveryReport {
        replaced = List.copyOf(replaced);
    }
}
