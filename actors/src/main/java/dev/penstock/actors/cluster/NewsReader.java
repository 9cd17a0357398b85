package dev.penstock.actors.cluster;

import dev.penstock.actors.precision.Overflow;
import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunMember;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.ir.ScheduleTextException;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalDouble;
import org.jspecify.annotations.Nullable;

/**
 * Tells a listener what news say. A step whose parts did not all come is left out: whoever follows
 * a run from its middle may meet half of one. One thread at a time.
 */
public final class NewsReader {
    /** What a {@link RunListener} is not told. */
    public interface Reader {
        /** A line for people. */
        void onLine(String line);

        /** The last news. */
        void onEnded(RunOutcome outcome, String summary);
    }

    private final RunListener listener;
    private final Reader reader;
    private final List<RankStep> ranks = new ArrayList<>();
    private RunNews.@Nullable Step step;

    public NewsReader(RunListener listener, Reader reader) {
        this.listener = listener;
        this.reader = reader;
    }

    /** Takes the next news. */
    public void read(RunNews news) {
        switch (news) {
            case RunNews.Told(String line) -> reader.onLine(line);
            case RunNews.Opened opened -> listener.onOpened(opened.devices(), opened.fingerprint());
            case RunNews.Placed(List<Integer> homes) -> listener.onPlaced(homes);
            case RunNews.Step begun -> {
                step = begun;
                ranks.clear();
            }
            case RunNews.StepOfRank part -> onPart(part);
            case RunNews.Overflowed(Overflow overflow) -> listener.onOverflow(overflow);
            case RunNews.Evaluation(long after, double loss, OptionalDouble accuracy) ->
                    listener.onEvaluation(after, loss, accuracy);
            case RunNews.Checkpoint(long after, long bytes, long nanos) ->
                    listener.onCheckpoint(after, bytes, nanos);
            case RunNews.CheckpointFailed(long after, String reason) ->
                    listener.onCheckpointFailed(after, reason);
            case RunNews.Recovering(int epoch, String cause) -> listener.onRecovering(epoch, cause);
            case RunNews.Recovery(RecoveryReport report) -> listener.onRecovery(report);
            case RunNews.Straggler(int rank, long after, double factor) ->
                    listener.onStraggler(rank, after, factor);
            case RunNews.Revised revised -> onRevised(revised);
            case RunNews.PlanNote(String note) -> listener.onPlanNote(note);
            case RunNews.Members(List<RunMember> members) -> listener.onMembers(members);
            case RunNews.Stall(String report) -> listener.onStall(report);
            case RunNews.Ended(RunOutcome outcome, String summary) ->
                    reader.onEnded(outcome, summary);
        }
    }

    private void onRevised(RunNews.Revised revised) {
        if (revised.order().isEmpty()) {
            return;
        }
        try {
            Schedule training = ScheduleText.parse(revised.order());
            listener.onRevised(revised.revision(), training, revised.completed());
        } catch (ScheduleTextException e) {
            throw new IllegalArgumentException("no order: " + revised, e);
        }
    }

    private void onPart(RunNews.StepOfRank part) {
        RunNews.Step begun = step;
        if (begun == null || begun.step() != part.step()) {
            return;
        }
        ranks.add(part.rank());
        if (ranks.size() == begun.ranks()) {
            step = null;
            listener.onStep(
                    new StepReport(
                            begun.step(),
                            begun.loss(),
                            begun.gradientNorm(),
                            begun.clipFactor(),
                            begun.startNanos(),
                            begun.endNanos(),
                            ranks,
                            begun.skipped()));
        }
    }
}
