package dev.penstock.runtime.events;

import dev.penstock.runtime.metrics.LineFile;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes lines of events and appends them, both on a thread of its own. While the disk is full,
 * lines are lost; the next one that is written follows a note of how many.
 */
final class LineAppender implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(LineAppender.class);
    private static final int LINES = 1024;
    private static final long PATIENCE_MS = 5_000;
    private static final Line LAST = new Line(null, _ -> {});

    private final Path file;
    private final InstantSource clock;
    private final BlockingQueue<Line> waiting = new ArrayBlockingQueue<>(LINES);
    private final AtomicLong leftOut = new AtomicLong();
    private final Thread writer;

    /**
     * @param event null for the end
     */
    private record Line(@Nullable RunEvent event, LongConsumer written) {}

    LineAppender(Path file, InstantSource clock) {
        this.file = file;
        this.clock = clock;
        this.writer = Thread.ofVirtual().name("event-log").start(this::write);
    }

    /** Hands an event over, or leaves it out if too many wait. */
    void append(RunEvent event) {
        append(event, _ -> {});
    }

    /**
     * Same as {@link #append(RunEvent)}.
     *
     * @param written told the length of its line in bytes, on the writing thread
     */
    void append(RunEvent event, LongConsumer written) {
        if (!waiting.offer(new Line(event, written))) {
            leftOut.incrementAndGet();
        }
    }

    /** Waits until everything is written, or a disk that hangs has had its time. */
    @Override
    public void close() {
        try {
            if (waiting.offer(LAST, PATIENCE_MS, TimeUnit.MILLISECONDS)) {
                writer.join(PATIENCE_MS);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void write() {
        try (var lines = new LineFile(file, lost -> RunEventJson.write(leftOut(lost)), LOG)) {
            while (true) {
                Line line = waiting.take();
                RunEvent event = line.event();
                if (event == null) {
                    return;
                }
                byte[] bytes = RunEventJson.write(event);
                if (lines.append(bytes)) {
                    line.written().accept(bytes.length);
                    long missing = leftOut.getAndSet(0);
                    if (missing > 0) {
                        lines.append(RunEventJson.write(leftOut(missing)));
                    }
                }
            }
        } catch (RuntimeException e) {
            LOG.warn("no more events are written to {}; training continues", file, e);
            dropAll();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private RunEvent leftOut(long missing) {
        return new RunEvent.Noted(
                clock.millis(),
                RunEvent.Noted.Kind.LEFT_OUT,
                "%d events are not in the log: the disk did not take them".formatted(missing));
    }

    /** Until closed, so that nobody waits for room. */
    private void dropAll() {
        try {
            while (waiting.take().event() != null) {
                // gone
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
