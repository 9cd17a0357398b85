package dev.penstock.actors.cluster;

import dev.penstock.actors.precision.Overflow;
import dev.penstock.actors.spi.PlanRevision;
import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunMember;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import java.util.List;
import java.util.OptionalDouble;
import java.util.function.Consumer;

/** Makes news of what a listener is told; {@link NewsReader} is its inverse. */
public final class NewsWriter implements RunListener {
    /** A frame of the control plane has 2 MiB. */
    private static final int MOST_CHARACTERS = 1 << 20;

    private final Consumer<RunNews> news;

    /**
     * @param news told on the listener's thread
     */
    public NewsWriter(Consumer<RunNews> news) {
        this.news = news;
    }

    @Override
    public void onOpened(List<String> devices, String fingerprint) {
        news.accept(new RunNews.Opened(devices, fingerprint));
    }

    @Override
    public void onPlaced(List<Integer> homes) {
        news.accept(new RunNews.Placed(homes));
    }

    @Override
    public void onStep(StepReport report) {
        news.accept(
                new RunNews.Step(
                        report.step(),
                        report.loss(),
                        report.gradientNorm(),
                        report.clipFactor(),
                        report.startNanos(),
                        report.endNanos(),
                        report.ranks().size(),
                        report.skipped()));
        for (RankStep rank : report.ranks()) {
            news.accept(new RunNews.StepOfRank(report.step(), rank));
        }
    }

    @Override
    public void onOverflow(Overflow overflow) {
        news.accept(new RunNews.Overflowed(overflow));
    }

    @Override
    public void onEvaluation(long step, double loss, OptionalDouble accuracy) {
        news.accept(new RunNews.Evaluation(step, loss, accuracy));
    }

    @Override
    public void onCheckpoint(long step, long bytes, long nanos) {
        news.accept(new RunNews.Checkpoint(step, bytes, nanos));
    }

    @Override
    public void onCheckpointFailed(long step, String reason) {
        news.accept(new RunNews.CheckpointFailed(step, reason));
    }

    @Override
    public void onRecovering(int epoch, String cause) {
        news.accept(new RunNews.Recovering(epoch, cause));
    }

    @Override
    public void onRecovery(RecoveryReport report) {
        news.accept(new RunNews.Recovery(report));
    }

    @Override
    public void onStraggler(int rank, long step, double factor) {
        news.accept(new RunNews.Straggler(rank, step, factor));
    }

    /** Whoever follows a run cannot measure steps of an order that is longer than a message. */
    @Override
    public void onRevised(PlanRevision revision, Schedule training, long completed) {
        String order = ScheduleText.print(training);
        boolean fits = order.length() <= MOST_CHARACTERS;
        news.accept(new RunNews.Revised(revision, fits ? order : "", completed));
    }

    @Override
    public void onPlanNote(String note) {
        news.accept(new RunNews.PlanNote(note));
    }

    @Override
    public void onMembers(List<RunMember> members) {
        news.accept(new RunNews.Members(members));
    }

    @Override
    public void onStall(String report) {
        news.accept(new RunNews.Stall(report));
    }
}
