package dev.penstock.actors.cluster;

import dev.penstock.actors.precision.Overflow;
import dev.penstock.actors.serialization.WireMessage;
import dev.penstock.actors.spi.PlanRevision;
import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.RunMember;
import dev.penstock.actors.spi.RunOutcome;
import java.util.List;
import java.util.OptionalDouble;

/** What those who follow a run are told, in the order in which it happens. */
public sealed interface RunNews extends WireMessage {
    /** The run waits, or its ranks are placed: a line for people. */
    record Told(String line) implements RunNews {}

    /** See {@link dev.penstock.actors.spi.RunListener#onOpened}. */
    record Opened(List<String> devices, String fingerprint) implements RunNews {
        public Opened {
            devices = List.copyOf(devices);
        }
    }

    /** See {@link dev.penstock.actors.spi.RunListener#onPlaced}. */
    record Placed(List<Integer> homes) implements RunNews {
        public Placed {
            homes = List.copyOf(homes);
        }
    }

    /** A committed step; its ranks follow, each in a message of its own: op times take room. */
    record Step(
            long step,
            double loss,
            double gradientNorm,
            double clipFactor,
            long startNanos,
            long endNanos,
            int ranks,
            long skipped)
            implements RunNews {}

    /** What one rank did in the step that was told before. */
    record StepOfRank(long step, RankStep rank) implements RunNews {}

    /** See {@link dev.penstock.actors.spi.RunListener#onOverflow}. */
    record Overflowed(Overflow overflow) implements RunNews {}

    /** See {@link dev.penstock.actors.spi.RunListener#onEvaluation}. */
    record Evaluation(long step, double loss, OptionalDouble accuracy) implements RunNews {}

    /** See {@link dev.penstock.actors.spi.RunListener#onCheckpoint}. */
    record Checkpoint(long step, long bytes, long nanos) implements RunNews {}

    /** See {@link dev.penstock.actors.spi.RunListener#onCheckpointFailed}. */
    record CheckpointFailed(long step, String reason) implements RunNews {}

    /** See {@link dev.penstock.actors.spi.RunListener#onRecovering}. */
    record Recovering(int epoch, String cause) implements RunNews {}

    /** See {@link dev.penstock.actors.spi.RunListener#onRecovery}. */
    record Recovery(RecoveryReport report) implements RunNews {}

    /** See {@link dev.penstock.actors.spi.RunListener#onStraggler}. */
    record Straggler(int rank, long step, double factor) implements RunNews {}

    /**
     * See {@link dev.penstock.actors.spi.RunListener#onRevised}.
     *
     * @param order as text; empty if it is too long to be told
     */
    record Revised(PlanRevision revision, String order, long completed) implements RunNews {}

    /** See {@link dev.penstock.actors.spi.RunListener#onPlanNote}. */
    record PlanNote(String note) implements RunNews {}

    /** See {@link dev.penstock.actors.spi.RunListener#onMembers}. */
    record Members(List<RunMember> members) implements RunNews {
        public Members {
            members = List.copyOf(members);
        }
    }

    /** See {@link dev.penstock.actors.spi.RunListener#onStall}. */
    record Stall(String report) implements RunNews {}

    /** The last news. */
    record Ended(RunOutcome outcome, String summary) implements RunNews {}
}
