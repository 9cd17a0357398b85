package dev.penstock.runtime.report;

import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.runtime.events.RunEvent;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;

/** Remembers a run's recoveries and when they were. Thread-safe. */
public final class RecoveryBook implements RunListener {
    /**
     * One recovery.
     *
     * @param resumed when every rank was open again
     */
    public record Entry(RecoveryReport report, Instant resumed) {
        /** As an event log tells of it. */
        public static Entry of(RunEvent.Recovered recovered) {
            var report =
                    new RecoveryReport(
                            recovered.told(),
                            recovered.epoch(),
                            recovered.replaced(),
                            RecoveryReport.Restart.valueOf(
                                    recovered.restart().toUpperCase(Locale.ROOT)),
                            TimeUnit.MICROSECONDS.toNanos(recovered.detectMicros()),
                            TimeUnit.MICROSECONDS.toNanos(recovered.resumeMicros()),
                            recovered.stepsLost(),
                            recovered.fromStep());
            return new Entry(report, Instant.ofEpochMilli(recovered.time()));
        }

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
