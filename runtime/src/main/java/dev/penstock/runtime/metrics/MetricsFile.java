package dev.penstock.runtime.metrics;

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Optional;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Reads {@code metrics.jsonl}; the file may be missing, cut off anywhere, or still growing. */
public final class MetricsFile {
    private MetricsFile() {}

    /**
     * Passes every readable line to {@code consumer}, in the file's order; a missing file has none.
     */
    public static void forEach(Path file, Consumer<? super MetricsLine> consumer)
            throws IOException {
        try (BufferedReader reader = reader(file)) {
            for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                MetricsJson.read(line).ifPresent(consumer);
            }
        } catch (NoSuchFileException e) {
            // nothing was written yet
        }
    }

    /**
     * Drops the lines after a step and those that cannot be read, so that a resumed run continues
     * where its checkpoint was taken. The old file stays whole until the new one is complete.
     */
    static void cutAfter(Path file, long lastStep) throws IOException {
        if (!Files.exists(file)) {
            return;
        }
        Path kept = file.resolveSibling(file.getFileName() + ".part");
        try (BufferedReader reader = reader(file);
                BufferedWriter writer =
                        Files.newBufferedWriter(kept, StandardCharsets.ISO_8859_1)) {
            for (@Nullable String line = reader.readLine();
                    line != null;
                    line = reader.readLine()) {
                Optional<MetricsLine> read = MetricsJson.read(line);
                if (read.isPresent() && read.get().step() <= lastStep) {
                    writer.write(line);
                    writer.write('\n');
                }
            }
        }
        Files.move(kept, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    }

    private static BufferedReader reader(Path file) throws IOException {
        // the lines are ASCII; a torn one must not fail to decode
        return Files.newBufferedReader(file, StandardCharsets.ISO_8859_1);
    }
}
