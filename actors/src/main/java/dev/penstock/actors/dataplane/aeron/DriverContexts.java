package dev.penstock.actors.dataplane.aeron;

import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.agrona.concurrent.BackoffIdleStrategy;
import org.agrona.concurrent.BusySpinIdleStrategy;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.SleepingIdleStrategy;

/** How every driver of ours is set up. */
final class DriverContexts {
    /**
     * For 16,384 counters, of which a publication takes about five; Aeron's own measure is four
     * times that, of which every start would write 40 MiB of zeros into shared memory.
     */
    private static final int COUNTER_BYTES = 2 << 20;

    /** Beyond the run's own: those of ranks that were given up may stay for a while. */
    private static final int SPARE_SESSIONS = 8;

    private DriverContexts() {}

    /**
     * One thread: over IPC no data passes through the driver, and over UDP it keeps up with a link
     * by itself; but it moves the senders' limit, so it stays awake while data flows and parks up
     * to a millisecond otherwise, unless it is told to spin or sleep. Logs are allocated whole:
     * memory that runs out is an error when a link opens, not a bus error in a later step. Whoever
     * reaches a UDP port can have the driver allocate a log for each session that he announces, so
     * a stream takes no more of them than the run can have.
     *
     * @param publications of the run, see {@link DriverSettings}
     */
    static MediaDriver.Context of(
            Path directory, int termLengthBytes, PollerMode idle, int publications) {
        return new MediaDriver.Context()
                .aeronDirectoryName(directory.toString())
                .warnIfDirectoryExists(false)
                .dirDeleteOnShutdown(true)
                .threadingMode(ThreadingMode.SHARED)
                .sharedThreadFactory(
                        Thread.ofPlatform().daemon().name("penstock-media-driver").factory())
                .sharedIdleStrategy(idleStrategy(idle))
                .imageLivenessTimeoutNs(AeronDataPlane.DRIVER_TIMEOUT.toNanos())
                .termBufferSparseFile(false)
                .ipcTermBufferLength(termLengthBytes)
                .publicationTermBufferLength(termLengthBytes)
                .clientLivenessTimeoutNs(AeronDataPlane.DRIVER_TIMEOUT.toNanos())
                .streamSessionLimit(publications + SPARE_SESSIONS)
                .lowStorageWarningThreshold(0)
                .counterValuesBufferLength(COUNTER_BYTES)
                .spiesSimulateConnection(false)
                .errorHandler(new DriverErrors(System::nanoTime));
    }

    private static IdleStrategy idleStrategy(PollerMode idle) {
        return switch (idle) {
            case SPINNING -> new BusySpinIdleStrategy();
            case SLEEPING -> new SleepingIdleStrategy(TimeUnit.MILLISECONDS.toNanos(1));
            case ADAPTIVE ->
                    new BackoffIdleStrategy(
                            20,
                            10,
                            TimeUnit.MICROSECONDS.toNanos(10),
                            TimeUnit.MILLISECONDS.toNanos(1));
        };
    }
}
