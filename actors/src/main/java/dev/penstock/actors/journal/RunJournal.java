package dev.penstock.actors.journal;

/** Where a supervisor writes what it must not forget. Called by the supervisor's thread. */
@FunctionalInterface
public interface RunJournal {
    /** Forgets everything: for runs that end with their supervisor. */
    RunJournal NONE = _ -> {};

    /**
     * Writes a record; it is on disk when this returns. A disk that refuses is reported once and
     * does not end the run: what is lost is only how far a restart would have come.
     */
    void append(JournalRecord record);
}
