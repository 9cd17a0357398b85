package dev.penstock.runtime.launch;

import dev.penstock.actors.journal.JournalFile;
import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.journal.JournalledRun;
import dev.penstock.actors.supervisor.RunBeginning;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.Consumer;

/**
 * What the journal of a run's directory knows of earlier starts. It never keeps a run from going
 * on: what it does not know is done again.
 */
public final class EarlierStarts {
    private final Path file;
    private final Optional<JournalledRun> run;
    private final Optional<String> trouble;

    private EarlierStarts(Path file, Optional<JournalledRun> run, Optional<String> trouble) {
        this.file = file;
        this.run = run;
        this.trouble = trouble;
    }

    /** Reads the journal in a run's directory, if there is one. */
    public static EarlierStarts in(Path directory) {
        Path file = directory.resolve(JournalFile.NAME);
        try {
            Optional<List<JournalRecord>> damaged = JournalFile.behindDamage(file);
            int used =
                    damaged.orElse(List.of()).stream()
                            .mapToInt(JournalRecord::epochUsed)
                            .max()
                            .orElse(0);
            return new EarlierStarts(
                    file,
                    JournalledRun.of(JournalFile.read(file)).map(run -> run.usedEpoch(used)),
                    damaged.map(
                            _ ->
                                    file
                                            + " is damaged: what follows its last whole record is ignored"));
        } catch (UncheckedIOException e) {
            String text = e.getMessage() + ": " + e.getCause();
            return new EarlierStarts(file, Optional.empty(), Optional.of(text));
        }
    }

    /** As another start: in an epoch that none of them had. */
    public RunBeginning next() {
        return run.<RunBeginning>map(known -> new RunBeginning.New(known.epoch() + 1))
                .orElse(RunBeginning.FIRST);
    }

    /** The last of them, if it began and did not end. */
    public Optional<JournalledRun> unfinished() {
        return run.filter(known -> known.ending().isEmpty());
    }

    /**
     * Says what the journal knows beyond the checkpoint that the run continues from, and what is
     * wrong with it.
     *
     * @param checkpoint its step; empty if the run starts from its beginning
     */
    public void tell(OptionalLong checkpoint, Consumer<String> line) {
        trouble.ifPresent(line);
        run.ifPresent(known -> tellBeyond(known, checkpoint, line));
    }

    /** Says so if there is no journal where one is expected. */
    public void tellIfAbsent(Consumer<String> line) {
        if (trouble.isEmpty() && !Files.exists(file)) {
            line.accept(file + ": none; what was committed after the checkpoint is not known");
        }
    }

    private static void tellBeyond(
            JournalledRun known, OptionalLong checkpoint, Consumer<String> line) {
        long first = checkpoint.orElse(known.began().completed()) + 1;
        long last = known.completed();
        if (first <= last) {
            String steps = first == last ? "step " + first : "steps %d-%d".formatted(first, last);
            String from =
                    checkpoint.isPresent()
                            ? "checkpoint " + checkpoint.getAsLong()
                            : "the beginning";
            line.accept(
                    "%s had been committed; %s done again from %s"
                            .formatted(steps, first == last ? "it is" : "they are", from));
        }
    }
}
