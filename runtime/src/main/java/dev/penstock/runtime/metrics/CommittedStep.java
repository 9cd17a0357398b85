package dev.penstock.runtime.metrics;

import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.journal.RunJournal;
import dev.penstock.runtime.checkpoint.DurableFiles;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.zip.CRC32C;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The newest committed step of a run whose state outlives its process, as its line of metrics has
 * it. A process may be killed between the update and that line; the run that goes on writes it.
 *
 * @param loss as in {@link StepMetrics}, like the others
 */
public record CommittedStep(long step, double loss, double gradientNorm, double clipFactor) {
    private static final Logger LOG = LoggerFactory.getLogger(CommittedStep.class);

    /** Returns a journal that keeps the newest step, durable before any rank applies it. */
    public static RunJournal journal(Path file) {
        return records -> {
            for (JournalRecord record : records) {
                if (record instanceof JournalRecord.Committed commit && !commit.skips()) {
                    write(file, commit);
                }
            }
        };
    }

    private static void write(Path file, JournalRecord.Committed commit) {
        try {
            String text =
                    "%d %s %s %s"
                            .formatted(
                                    commit.step(),
                                    Double.toHexString(commit.loss()),
                                    Double.toHexString(commit.gradientNorm()),
                                    Double.toHexString(commit.clipFactor().orElseThrow()));
            DurableFiles.write(file, text + " " + sum(text));
        } catch (IOException e) {
            LOG.warn(
                    "cannot write {}: should the process be killed now, the line of step {} is lost",
                    file,
                    commit.step(),
                    e);
        }
    }

    /** Returns what a process left; empty if there is nothing or it is damaged. */
    static Optional<CommittedStep> read(Path file) {
        try {
            String text = Files.readString(file);
            String[] words = text.split(" ", -1);
            if (!text.endsWith(" " + sum(text.substring(0, text.lastIndexOf(' '))))) {
                throw new IOException("it is damaged");
            }
            return Optional.of(
                    new CommittedStep(
                            Long.parseLong(words[0]),
                            Double.parseDouble(words[1]),
                            Double.parseDouble(words[2]),
                            Double.parseDouble(words[3])));
        } catch (IOException | NumberFormatException | IndexOutOfBoundsException e) {
            LOG.debug("no committed step in {}", file, e);
            return Optional.empty();
        }
    }

    private static String sum(String text) {
        var sum = new CRC32C();
        sum.update(text.getBytes(StandardCharsets.UTF_8));
        return Long.toHexString(sum.getValue());
    }
}
