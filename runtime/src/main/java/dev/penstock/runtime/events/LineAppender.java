package dev.penstock.runtime.events;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.InstantSource;
import java.util.Arrays;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes lines of events and appends them, both on a thread of its own. When the disk is full it
 * says so once and stops.
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
        try (FileChannel channel =
                        FileChannel.open(
                                file,
                                StandardOpenOption.CREATE,
                                StandardOpenOption.READ,
                                StandardOpenOption.WRITE);
                OutputStream out = Channels.newOutputStream(channel)) {
            channel.position(channel.size());
            if (!endsALine(channel)) {
                out.write('\n');
            }
            while (true) {
                Line line = waiting.take();
                RunEvent event = line.event();
                if (event == null) {
                    return;
                }
                byte[] bytes = RunEventJson.write(event);
                writeLine(out, bytes);
                line.written().accept(bytes.length);
                long missing = leftOut.getAndSet(0);
                if (missing > 0) {
                    writeLine(out, RunEventJson.write(leftOut(missing)));
                }
            }
        } catch (IOException | RuntimeException e) {
            LOG.warn("no more events are written to {}: {}; training goes on", file, e.toString());
            dropAll();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** In one piece, so that a reader sees few halves. */
    private static void writeLine(OutputStream out, byte[] line) throws IOException {
        byte[] whole = Arrays.copyOf(line, line.length + 1);
        whole[line.length] = '\n';
        out.write(whole);
    }

    /** What a process left that died in the middle of a line must not swallow the next one. */
    private static boolean endsALine(FileChannel channel) throws IOException {
        long size = channel.size();
        var last = ByteBuffer.allocate(1);
        return size == 0 || (channel.read(last, size - 1) == 1 && last.get(0) == '\n');
    }

    private RunEvent leftOut(long missing) {
        return new RunEvent.Noted(
                clock.millis(),
                RunEvent.Noted.Kind.LEFT_OUT,
                "%d events are not in the log: the disk did not keep up".formatted(missing));
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
