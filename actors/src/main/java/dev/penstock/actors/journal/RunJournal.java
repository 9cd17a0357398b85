package dev.penstock.actors.journal;

import java.util.List;

/** Where a supervisor writes what it must not forget. Called by the supervisor's thread. */
@FunctionalInterface
public interface RunJournal {
    /** Forgets everything: for runs that end with their supervisor. */
    RunJournal NONE = _ -> {};

    /**
     * Writes records, which are on disk when this returns. A disk that refuses is reported and does
     * not end the run: what it refused is written with the next record that it takes, and until
     * then only a supervisor's death makes a difference.
     *
     * @throws JournalTakenException if another supervisor has taken the run up meanwhile
     */
    void append(List<JournalRecord> records);

    /** The same with one record. */
    default void append(JournalRecord record) {
        append(List.of(record));
    }
}
