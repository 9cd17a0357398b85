package dev.penstock.runtime.events;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.function.Consumer;

/**
 * Follows an event log from its beginning, also while it grows. One thread at a time.
 *
 * <p>A line is told once its end was written; what is torn in the middle is passed over.
 */
public final class EventLogReader {
    private static final int BUFFER_BYTES = 1 << 16;

    private final Path file;
    private long position;
    private byte[] pending = new byte[BUFFER_BYTES];
    private int held;

    /**
     * @param file it need not exist yet
     */
    public EventLogReader(Path file) {
        this.file = file;
    }

    /** Hands on every line that was completed since the last call, in order. */
    public void poll(Consumer<? super RunEvent> consumer) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
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
                tellLines(unscanned, consumer);
            }
        } catch (NoSuchFileException e) {
            // nothing was written yet
        }
    }

    private void tellLines(int unscanned, Consumer<? super RunEvent> consumer) {
        int start = 0;
        for (int i = unscanned; i < held; i++) {
            if (pending[i] == '\n') {
                RunEventJson.read(pending, start, i - start).ifPresent(consumer);
                start = i + 1;
            }
        }
        System.arraycopy(pending, start, pending, 0, held - start);
        held -= start;
    }
}
