package dev.penstock.actors.journal;

import java.nio.file.Path;

/**
 * A supervisor's journal is another's by now: it was taken for dead, and the run was taken up. What
 * it was about to do must not be done.
 */
public final class JournalTakenException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    JournalTakenException(Path file) {
        super(
                "another supervisor has taken the run up and begun a new journal, %s; this one ends"
                        .formatted(file));
    }
}
