package dev.penstock.runtime.metrics;

import java.io.BufferedReader;
import java.io.EOFException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashMap;
import java.util.Map;
import java.util.OptionalLong;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Reads {@code metrics.jsonl}; the file may be missing, cut off anywhere, or still growing. */
public final class MetricsFile {
    private static final int BLOCK_BYTES = 8192;
    private static final int BEGINNING_BYTES = 128;
    private static final Pattern STEP =
            Pattern.compile("\\{\"type\":\"[a-z]+\",\"step\":(\\d{1,18}),");
    private static final String EVALUATION = "\"type\":\"evaluation\"";

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
     * The validation loss of every evaluated step.
     *
     * @throws UncheckedIOException if the file cannot be read
     */
    public static Map<Long, Double> validationLosses(Path file) {
        Map<Long, Double> losses = new HashMap<>();
        try {
            forEach(
                    file,
                    line -> {
                        if (line instanceof EvaluationMetrics evaluation) {
                            losses.put(evaluation.step(), evaluation.validationLoss());
                        }
                    });
        } catch (IOException e) {
            throw new UncheckedIOException("cannot read " + file, e);
        }
        return losses;
    }

    /** Follows the file while it grows: the lines that were completed since the last call. */
    public static void poll(GrowingLines lines, Consumer<? super MetricsLine> consumer)
            throws IOException {
        lines.poll(
                (bytes, start, length) ->
                        MetricsJson.read(new String(bytes, start, length, StandardCharsets.UTF_8))
                                .ifPresent(consumer));
    }

    /**
     * Drops the lines after a step and those at the end that cannot be read, so that a resumed run
     * continues where its checkpoint was taken. Reads the file from its end, and no more of it than
     * goes.
     *
     * @return whether an evaluation after that very step stays
     */
    static boolean cutAfter(Path file, long lastStep) throws IOException {
        try (FileChannel channel =
                FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            long end = lineStart(channel, channel.size() + 1);
            while (end > 0) {
                long start = lineStart(channel, end);
                OptionalLong step = step(beginning(channel, start, end));
                if (step.isPresent() && step.getAsLong() <= lastStep) {
                    break;
                }
                end = start;
            }
            channel.truncate(end);
            return isEvaluated(channel, end, lastStep);
        }
    }

    /** Returns the step of the last line that has one; -1 if none has. */
    static long lastStep(Path file) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
            long end = channel.size();
            while (end > 0) {
                long start = lineStart(channel, end);
                OptionalLong step = step(beginning(channel, start, end));
                if (step.isPresent()) {
                    return step.getAsLong();
                }
                end = start;
            }
            return -1;
        }
    }

    private static boolean isEvaluated(FileChannel channel, long end, long lastStep)
            throws IOException {
        while (end > 0) {
            long start = lineStart(channel, end);
            String line = beginning(channel, start, end);
            OptionalLong step = step(line);
            if (step.isPresent() && step.getAsLong() < lastStep) {
                return false;
            }
            if (step.isPresent() && line.contains(EVALUATION)) {
                return true;
            }
            end = start;
        }
        return false;
    }

    private static OptionalLong step(String line) {
        Matcher step = STEP.matcher(line);
        return step.lookingAt()
                ? OptionalLong.of(Long.parseLong(step.group(1)))
                : OptionalLong.empty();
    }

    /** Where the line begins whose break is before this position. */
    private static long lineStart(FileChannel channel, long end) throws IOException {
        long before = end - 1;
        while (before > 0) {
            long at = Math.max(0, before - BLOCK_BYTES);
            ByteBuffer block = read(channel, at, before);
            for (int i = block.limit() - 1; i >= 0; i--) {
                if (block.get(i) == '\n') {
                    return at + i + 1;
                }
            }
            before = at;
        }
        return 0;
    }

    private static String beginning(FileChannel channel, long start, long end) throws IOException {
        ByteBuffer bytes = read(channel, start, Math.min(end, start + BEGINNING_BYTES));
        return StandardCharsets.ISO_8859_1.decode(bytes).toString();
    }

    private static ByteBuffer read(FileChannel channel, long from, long to) throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate((int) (to - from));
        while (bytes.hasRemaining()) {
            if (channel.read(bytes, from + bytes.position()) < 0) {
                throw new EOFException("the file has become shorter");
            }
        }
        return bytes.flip();
    }

    private static BufferedReader reader(Path file) throws IOException {
        // the lines are ASCII; a torn one must not fail to decode
        return Files.newBufferedReader(file, StandardCharsets.ISO_8859_1);
    }
}
