package dev.penstock.runtime.metrics;

import dev.penstock.actors.precision.Overflow;
import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.StepReport;
import java.io.PrintWriter;
import java.util.OptionalDouble;
import java.util.concurrent.TimeUnit;

/**
 * Progress for files and pipes: the first step, the last, and between them a line every 5 per cent
 * or every ten seconds, whichever comes first, but never two within half a second.
 */
final class ProgressLinesListener implements ProgressListener {
    private static final long PARTS = 20;
    private static final long LONGEST_SILENCE_NANOS = TimeUnit.SECONDS.toNanos(10);
    private static final long SHORTEST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(500);

    private final PrintWriter out;
    private final ProgressFigures figures;
    private final long stepsPerLine;
    private long lastLineStep = -1;
    private long lastLineNanos;
    private boolean told = true;

    ProgressLinesListener(PrintWriter out, ProgressFigures figures) {
        this.out = out;
        this.figures = figures;
        this.stepsPerLine = Math.max(1, (figures.lastStep() - figures.firstStep()) / PARTS);
    }

    @Override
    public void onStep(StepReport report) {
        figures.onStep(report);
        told = false;
        if (lastLineStep < 0 || isDue()) {
            line();
        }
    }

    @Override
    public void onEvaluation(long step, double loss, OptionalDouble accuracy) {
        figures.onEvaluation(loss, accuracy);
        told = false;
    }

    @Override
    public void onCheckpoint(long step, long bytes, long nanos) {}

    @Override
    public void onCheckpointFailed(long step, String reason) {
        out.println("step %d: the checkpoint failed: %s".formatted(step, reason));
    }

    @Override
    public void onRecovery(RecoveryReport report) {
        figures.goBackTo(report.fromStep());
        out.println(Notices.recovery(report));
        lastLineStep = Math.min(lastLineStep, report.fromStep());
    }

    @Override
    public void onStall(String report) {
        out.println(report);
    }

    @Override
    public void onPlanNote(String note) {
        out.println(note);
    }

    @Override
    public void onOverflow(Overflow overflow) {
        out.println(overflow.words());
    }

    @Override
    public void onStraggler(int rank, long step, double factor) {
        out.println(Notices.straggler(rank, step, factor));
    }

    /** Prints how far the run came, unless that was printed already. */
    @Override
    public void close() {
        if (lastLineStep >= 0 && !told) {
            line();
        }
        out.flush();
    }

    private boolean isDue() {
        long silence = figures.nowNanos() - lastLineNanos;
        boolean far = figures.step() - lastLineStep >= stepsPerLine;
        return silence >= LONGEST_SILENCE_NANOS || (far && silence >= SHORTEST_PAUSE_NANOS);
    }

    private void line() {
        told = true;
        lastLineStep = figures.step();
        lastLineNanos = figures.nowNanos();
        out.println(
                "step %d/%d  %s  ETA %s"
                        .formatted(
                                figures.step(),
                                figures.lastStep(),
                                figures.figures(),
                                Quantities.clock(figures.left())));
        out.flush();
    }
}
