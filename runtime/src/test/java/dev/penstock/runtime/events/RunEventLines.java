package dev.penstock.runtime.events;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Objects;
import java.util.zip.GZIPInputStream;

/** Event logs of runs that never were, and of one that was. */
public final class RunEventLines {
    private static final String RECORDED = "/recorded/quickstart.events.jsonl.gz";

    private RunEventLines() {}

    /**
     * Writes the event log of a quickstart on two cores: {@code penstock train
     * sample-configs/quickstart.conf}.
     */
    public static void writeRecordedQuickstart(Path file) throws IOException {
        InputStream recorded =
                Objects.requireNonNull(RunEventLines.class.getResourceAsStream(RECORDED));
        try (InputStream lines = new GZIPInputStream(recorded)) {
            Files.copy(lines, file);
        }
    }

    /** Appends lines at once. */
    public static void append(Path file, RunEvent... events) throws IOException {
        try (OutputStream out =
                new BufferedOutputStream(
                        Files.newOutputStream(
                                file, StandardOpenOption.CREATE, StandardOpenOption.APPEND))) {
            for (RunEvent event : events) {
                out.write(RunEventJson.write(event));
                out.write('\n');
            }
        }
    }
}
