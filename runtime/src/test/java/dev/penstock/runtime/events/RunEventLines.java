package dev.penstock.runtime.events;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** Event logs of runs that never were. */
public final class RunEventLines {
    private RunEventLines() {}

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
