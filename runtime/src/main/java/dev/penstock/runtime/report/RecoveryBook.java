package dev.penstock.runtime.report;

import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.RunListener;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;

/** Remembers a run's recoveries and when they were. Thread-safe. */
public final class RecoveryBook implements RunListener {
    /**
     * One recovery.
     *
     * @param resumed when every rank was open again
     */
    public record Entry(RecoveryReport report, Instant resumed) {
        /** When it was known that something had died. */
        public Instant began() {
            return resumed.minusNanos(report.resumeNanos());
        }
    }

    private final InstantSource clock;
    private final List<Entry> entries = new ArrayList<>();

    public RecoveryBook(InstantSource clock) {
        this.clock = clock;
    }

    @Override
    public synchronized void onRecovery(RecoveryReport report) {
        entries.add(new Entry(report, clock.instant()));
    }

    /** One that was before. */
    synchronized void add(Entry entry) {
        entries.add(entry);
    }

    /** All so far, in order. */
    public synchronized List<Entry> all() {
        return List.copyOf(entries);
    }
}
