package dev.penstock.runtime.events;

import dev.penstock.runtime.metrics.GrowingLines;
import java.io.IOException;
import java.nio.file.Path;
import java.util.function.Consumer;

/**
 * Follows an event log from its beginning, also while it grows. One thread at a time.
 *
 * <p>A line is told once its end was written; what is torn in the middle is passed over.
 */
public final class EventLogReader {
    private final GrowingLines lines;

    /**
     * @param file it need not exist yet
     */
    public EventLogReader(Path file) {
        this.lines = new GrowingLines(file);
    }

    /** Hands on every line that was completed since the last call, in order. */
    public void poll(Consumer<? super RunEvent> consumer) throws IOException {
        lines.poll(
                (bytes, start, length) ->
                        RunEventJson.read(bytes, start, length).ifPresent(consumer));
    }
}
