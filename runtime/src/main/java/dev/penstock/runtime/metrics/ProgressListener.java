package dev.penstock.runtime.metrics;

import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.StepTokens;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.util.Optional;
import java.util.function.LongSupplier;

/**
 * Shows how far a run is: loss, validation loss, tokens per second, the measured bubble next to the
 * predicted one, and the remaining time. Close it when the run ends, before printing anything else.
 */
public sealed interface ProgressListener extends RunListener, AutoCloseable
        permits ProgressBarListener, ProgressLinesListener {

    /**
     * Chooses a bar or lines.
     *
     * @param out for lines; not closed
     * @param terminal for a bar, where there is one to draw on; not closed
     * @param columns width of the terminal, 0 to query it
     * @param firstStep the step that the run continues from; 0 for a new run
     * @param lastStep the step that it ends with
     * @param tokens that the steps train on
     * @param meter of the lowered training program
     */
    static ProgressListener of(
            PrintWriter out,
            Optional<PrintStream> terminal,
            int columns,
            String name,
            long firstStep,
            long lastStep,
            StepTokens tokens,
            PipelineMeter meter) {
        LongSupplier nanoClock = System::nanoTime;
        ProgressFigures figures =
                new ProgressFigures(firstStep, lastStep, tokens, meter, nanoClock);
        return terminal.<ProgressListener>map(
                        screen -> new ProgressBarListener(screen, columns, name, figures))
                .orElseGet(() -> new ProgressLinesListener(out, figures));
    }

    @Override
    void close();
}
