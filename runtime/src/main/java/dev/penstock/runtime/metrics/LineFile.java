package dev.penstock.runtime.metrics;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.OptionalLong;
import java.util.function.LongFunction;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

/**
 * Appends whole lines to a file and never throws. A line that a full disk does not take is lost;
 * every later one is tried, and the first that there is room for follows a line that says how many
 * are missing. The log names the beginning of a gap and its end; a disk that fills again and again
 * is named once a minute, with the number of lines that it did not take.
 *
 * <p>For one thread at a time.
 */
public final class LineFile implements AutoCloseable {
    private static final Duration SAY_AGAIN = Duration.ofMinutes(1);

    private final Path file;
    private final LongFunction<byte[]> gap;
    private final Logger log;
    private final LongSupplier nanoTime;
    private @Nullable FileChannel channel;
    private long missing;
    private long missingInAll;
    private OptionalLong saidNanos = OptionalLong.empty();
    private boolean said;

    /**
     * @param gap the line, without its break, that says how many lines are missing
     * @param log of whoever writes
     */
    public LineFile(Path file, LongFunction<byte[]> gap, Logger log) {
        this(file, gap, log, System::nanoTime);
    }

    LineFile(Path file, LongFunction<byte[]> gap, Logger log, LongSupplier nanoTime) {
        this.file = file;
        this.gap = gap;
        this.log = log;
        this.nanoTime = nanoTime;
    }

    /** Makes the file. If that fails, the first line reports it. */
    public void create() {
        try {
            open();
        } catch (IOException e) {
            log.debug("cannot create {} yet", file, e);
        }
    }

    /**
     * Appends a line in one piece, so that a reader sees few halves.
     *
     * @param line without its break
     * @return whether it was written
     */
    public boolean append(byte[] line) {
        try {
            FileChannel open = open();
            if (missing == 0) {
                write(open, line);
            } else {
                write(open, gap.apply(missing), line);
                gapEnds();
            }
            return true;
        } catch (IOException | RuntimeException e) {
            if (missing++ == 0) {
                gapBegins(e);
            }
            missingInAll++;
            close();
            return false;
        }
    }

    private void gapBegins(Exception cause) {
        long now = nanoTime.getAsLong();
        said = saidNanos.isEmpty() || now - saidNanos.getAsLong() >= SAY_AGAIN.toNanos();
        if (said) {
            saidNanos = OptionalLong.of(now);
            log.warn(
                    "cannot write to {}: {}; training continues, and every later line is tried;"
                            + " lines lost before: {}",
                    file,
                    cause.toString(),
                    missingInAll);
        }
    }

    private void gapEnds() {
        if (said) {
            log.info("{} is written again; {} lines are missing", file, missing);
        }
        missing = 0;
    }

    /** The next line opens the file again. */
    @Override
    public void close() {
        FileChannel open = channel;
        channel = null;
        if (open != null) {
            try {
                open.close();
            } catch (IOException e) {
                log.debug("closing {}", file, e);
            }
        }
    }

    private FileChannel open() throws IOException {
        FileChannel open = channel;
        if (open == null) {
            open =
                    FileChannel.open(
                            file,
                            StandardOpenOption.CREATE,
                            StandardOpenOption.READ,
                            StandardOpenOption.WRITE);
            channel = open;
            open.position(open.size());
            if (!endsALine(open)) {
                write(open, new byte[0]);
            }
        }
        return open;
    }

    /** What a process left that died in the middle of a line must not swallow the next one. */
    private static boolean endsALine(FileChannel channel) throws IOException {
        long size = channel.size();
        var last = ByteBuffer.allocate(1);
        return size == 0 || (channel.read(last, size - 1) == 1 && last.get(0) == '\n');
    }

    /** All of the lines or, if the disk takes only a part of them, nothing. */
    private static void write(FileChannel channel, byte[]... lines) throws IOException {
        long before = channel.position();
        var whole = new ByteArrayOutputStream();
        for (byte[] line : lines) {
            whole.write(line);
            whole.write('\n');
        }
        ByteBuffer left = ByteBuffer.wrap(whole.toByteArray());
        try {
            while (left.hasRemaining()) {
                channel.write(left);
            }
        } catch (IOException e) {
            if (left.position() > 0) {
                channel.truncate(before);
            }
            throw e;
        }
    }
}
