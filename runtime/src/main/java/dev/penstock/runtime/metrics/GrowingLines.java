package dev.penstock.runtime.metrics;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;

/**
 * Follows a file of lines from its beginning, also while it grows. A line is told once its end was
 * written. One thread at a time.
 */
public final class GrowingLines {
    private static final int BUFFER_BYTES = 1 << 16;

    private final Path file;
    private long position;
    private byte[] pending = new byte[BUFFER_BYTES];
    private int held;

    /** Takes a line, which is in a buffer until it returns. */
    @FunctionalInterface
    public interface LineConsumer {
        /**
         * Takes the next line.
         *
         * @param bytes holds the line from {@code start} on, and other things around it
         * @param length without the line's break
         */
        void accept(byte[] bytes, int start, int length);
    }

    /**
     * @param file it need not exist yet
     */
    public GrowingLines(Path file) {
        this.file = file;
    }

    /**
     * Hands on every line that was completed since the last call, in order. Of a file that was cut,
     * those behind its new end.
     */
    public void poll(LineConsumer consumer) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
            if (channel.size() < position) {
                position = channel.size();
                held = 0;
            }
            while (true) {
                if (held == pending.length) {
                    pending = Arrays.copyOf(pending, 2 * pending.length);
                }
                ByteBuffer room = ByteBuffer.wrap(pending, held, pending.length - held);
                int read = channel.read(room, position);
                if (read <= 0) {
                    return;
                }
                position += read;
                int unscanned = held;
                held += read;
                tell(unscanned, consumer);
            }
        } catch (NoSuchFileException e) {
            // nothing was written yet
        }
    }

    private void tell(int unscanned, LineConsumer consumer) {
        int start = 0;
        for (int i = unscanned; i < held; i++) {
            if (pending[i] == '\n') {
                consumer.accept(pending, start, i - start);
                start = i + 1;
            }
        }
        System.arraycopy(pending, start, pending, 0, held - start);
        held -= start;
    }
}
