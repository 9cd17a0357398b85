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
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Appends lines from a thread of its own. When the disk is full it says so once and stops. */
final class LineAppender implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(LineAppender.class);
    private static final int LINES = 1024;
    private static final long PATIENCE_MS = 5_000;
    private static final byte[] LAST = {};

    private final Path file;
    private final InstantSource clock;
    private final BlockingQueue<byte[]> waiting = new ArrayBlockingQueue<>(LINES);
    private final AtomicLong leftOut = new AtomicLong();
    private final Thread writer;

    LineAppender(Path file, InstantSource clock) {
        this.file = file;
        this.clock = clock;
        this.writer = Thread.ofVirtual().name("event-log").start(this::write);
    }

    /**
     * Hands a line over, or leaves it out if too many wait.
     *
     * @return its length in bytes
     */
    long append(RunEvent event) {
        byte[] line = RunEventJson.write(event);
        if (!waiting.offer(line)) {
            leftOut.incrementAndGet();
        }
        return line.length;
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
            for (byte[] line = waiting.take(); line.length > 0; line = waiting.take()) {
                writeLine(out, line);
                long missing = leftOut.getAndSet(0);
                if (missing > 0) {
                    writeLine(out, RunEventJson.write(leftOut(missing)));
                }
            }
        } catch (IOException e) {
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
            while (waiting.take().length > 0) {
                // gone
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
