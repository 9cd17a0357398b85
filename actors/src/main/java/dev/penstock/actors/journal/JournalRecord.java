package dev.penstock.actors.journal;

import dev.penstock.actors.spi.PlanRevision;
import java.util.OptionalDouble;

/** One durable fact about a run. */
public sealed interface JournalRecord {
    /** The epoch that the record says was used; 0 if it names none. */
    default int epochUsed() {
        return switch (this) {
            case Began began -> began.epoch();
            case EpochRaised raised -> raised.epoch();
            case Committed committed -> committed.epoch();
            case RolledBack back -> back.epoch();
            case Skipped skipped -> skipped.epoch();
            case Counted _, Placed _, Published _, Revised _, LossScaled _, Failed _, Ended _ -> 0;
        };
    }

    /**
     * A supervisor took the run up.
     *
     * @param completed training steps done before
     */
    record Began(String runId, String planHash, int ranks, int epoch, long completed)
            implements JournalRecord {}

    /** A recovery raised the epoch. */
    record EpochRaised(int epoch, String cause) implements JournalRecord {}

    /**
     * A recovery that counts: a run bears only so many.
     *
     * @param atMs on the clock of the world, since the next supervisor may run elsewhere
     */
    record Counted(long atMs, String cause) implements JournalRecord {}

    /**
     * The rank is hosted there from now on, or was to be: where to ask for it.
     *
     * @param process as its {@code NodeInfo.process} says
     */
    record Placed(int rank, String process) implements JournalRecord {}

    /**
     * The step will be applied everywhere, whatever happens; written before any rank hears of it.
     *
     * @param clipFactor that every rank applies; empty if the step overflowed, and nothing is
     * @param loss and gradientNorm are what the step's report will say, whoever lives to write it
     */
    record Committed(
            int epoch, long step, OptionalDouble clipFactor, double loss, double gradientNorm)
            implements JournalRecord {
        /** Of a step that is applied. */
        public Committed(
                int epoch, long step, double clipFactor, double loss, double gradientNorm) {
            this(epoch, step, OptionalDouble.of(clipFactor), loss, gradientNorm);
        }

        /** Whether the step overflowed. */
        public boolean skips() {
            return clipFactor.isEmpty();
        }
    }

    /**
     * A checkpoint is complete on disk; one after another is the newest that is whole.
     *
     * @param step {@link JournalledRun#NONE} if none is
     */
    record Published(long step) implements JournalRecord {}

    /**
     * The loss is scaled; written where the run begins. Later states follow from this one and from
     * the steps that overflowed.
     *
     * @param step after which the scaler has this state
     * @param state see {@link dev.penstock.actors.precision.LossScaler#text}
     */
    record LossScaled(long step, String state) implements JournalRecord {}

    /** All ranks went back: later commits are void. */
    record RolledBack(int epoch, long step) implements JournalRecord {}

    /** The run follows another plan from the newest checkpoint on; an epoch is raised for it. */
    record Revised(PlanRevision revision) implements JournalRecord {}

    /** The step is left out: nothing of it was applied anywhere. */
    record Skipped(int epoch, long step) implements JournalRecord {}

    /** The run is over because of this; nobody is to take it up by himself. */
    record Failed(long step, String reason) implements JournalRecord {}

    /** The run ended in order after this step. */
    record Ended(long step) implements JournalRecord {}
}
