package dev.penstock.runtime.metrics;

import dev.penstock.actors.precision.Overflow;
import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.StepReport;
import java.io.PrintStream;
import java.time.Duration;
import java.util.OptionalDouble;
import me.tongfei.progressbar.ConsoleProgressBarConsumer;
import me.tongfei.progressbar.ProgressBar;

/** Progress on a terminal: one line that is redrawn a few times per second. */
final class ProgressBarListener implements ProgressListener {
    private static final int REDRAW_MILLIS = 250;
    private static final int LONGEST_NAME = 20;
    private static final String CLEAR_LINE = "\r\u001b[K";

    private final PrintStream out;
    private final ProgressFigures figures;
    private final ProgressBar bar;
    private volatile ProgressLine line; // read by the thread that draws

    ProgressBarListener(PrintStream out, int columns, String name, ProgressFigures figures) {
        this.out = out;
        this.figures = figures;
        line =
                new ProgressLine(
                        shown(name),
                        figures.firstStep(),
                        figures.lastStep(),
                        Duration.ZERO,
                        ProgressLine.Figures.NONE);
        boolean blocks = out.charset().newEncoder().canEncode('█');
        this.bar =
                ProgressBar.builder()
                        .setInitialMax(figures.lastStep())
                        .startsFrom(figures.firstStep(), Duration.ZERO)
                        .setUpdateIntervalMillis(REDRAW_MILLIS)
                        .setRenderer((_, width) -> line.text(width, blocks))
                        .setConsumer(
                                new ConsoleProgressBarConsumer(out, columns > 0 ? columns : -1))
                        .build();
    }

    @Override
    public void onStep(StepReport report) {
        figures.onStep(report);
        tell();
    }

    @Override
    public void onEvaluation(long step, double loss, OptionalDouble accuracy) {
        figures.onEvaluation(loss, accuracy);
        tell();
    }

    @Override
    public void onCheckpoint(long step, long bytes, long nanos) {}

    @Override
    public void onCheckpointFailed(long step, String reason) {
        above("step %d: the checkpoint failed: %s".formatted(step, reason));
    }

    @Override
    public void onRecovery(RecoveryReport report) {
        figures.goBackTo(report.fromStep());
        tell();
        above(Notices.recovery(report));
    }

    @Override
    public void onStall(String report) {
        above(report);
    }

    @Override
    public void onPlanNote(String note) {
        above(note);
    }

    @Override
    public void onOverflow(Overflow overflow) {
        above(overflow.words());
    }

    @Override
    public void onStraggler(int rank, long step, double factor) {
        above(Notices.straggler(rank, step, factor));
    }

    /** Draws the bar one last time and leaves it on the screen. */
    @Override
    public void close() {
        bar.close();
        out.flush();
    }

    private void tell() {
        boolean any = figures.step() > figures.firstStep();
        line =
                new ProgressLine(
                        line.name(),
                        figures.step(),
                        figures.lastStep(),
                        figures.knowPace() ? figures.left() : Duration.ZERO,
                        any ? figures.shortFigures() : ProgressLine.Figures.NONE);
        bar.stepTo(figures.step());
    }

    private void above(String message) {
        out.print(CLEAR_LINE + message + System.lineSeparator());
        out.flush();
    }

    /**
     * Names come from outside and must neither move the cursor nor push the figures off the line.
     */
    private static String shown(String name) {
        String clean = name.strip().replaceAll("\\p{Cntrl}", "?");
        return clean.length() <= LONGEST_NAME ? clean : clean.substring(0, LONGEST_NAME);
    }
}
