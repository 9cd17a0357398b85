package dev.penstock.runtime.cli.command;

import java.util.Optional;
import java.util.function.LongConsumer;
import me.tongfei.progressbar.ConsoleProgressBarConsumer;
import me.tongfei.progressbar.ProgressBar;
import me.tongfei.progressbar.ProgressBarBuilder;
import me.tongfei.progressbar.ProgressBarStyle;

/** Shows how far a piece of work is, on a terminal that can be drawn on; nowhere else. */
public final class WorkBar implements LongConsumer, AutoCloseable {
    private static final int REDRAW_MILLIS = 250;

    private final Optional<ProgressBar> bar;

    private WorkBar(Optional<ProgressBar> bar) {
        this.bar = bar;
    }

    /**
     * Shows work that is counted in bytes.
     *
     * @param name what is done
     * @param most bytes there are
     */
    public static WorkBar ofBytes(String name, long most) {
        return of(name, most, builder -> builder.setUnit(" MiB", 1 << 20));
    }

    /**
     * Shows work that is counted in pieces.
     *
     * @param name what is done
     * @param most pieces there are
     */
    public static WorkBar ofPieces(String name, long most) {
        return of(name, most, _ -> {});
    }

    private static WorkBar of(
            String name, long most, java.util.function.Consumer<ProgressBarBuilder> unit) {
        return new WorkBar(
                Terminal.screen()
                        .map(
                                screen -> {
                                    ProgressBarBuilder builder =
                                            ProgressBar.builder()
                                                    .setTaskName(name)
                                                    .setInitialMax(most)
                                                    .setStyle(
                                                            screen.charset()
                                                                            .newEncoder()
                                                                            .canEncode('█')
                                                                    ? ProgressBarStyle.UNICODE_BLOCK
                                                                    : ProgressBarStyle.ASCII)
                                                    .setUpdateIntervalMillis(REDRAW_MILLIS)
                                                    .setConsumer(
                                                            new ConsoleProgressBarConsumer(screen));
                                    unit.accept(builder);
                                    return builder.build();
                                }));
    }

    /** Shows that so much is done. */
    @Override
    public void accept(long done) {
        bar.ifPresent(shown -> shown.stepTo(Math.min(done, shown.getMax())));
    }

    @Override
    public void close() {
        bar.ifPresent(ProgressBar::close);
    }
}
