package dev.penstock.runtime.events;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;

/** The end of an event log: logs of long runs are large, and their newest lines say most. */
public final class EventLogTail {
    private static final int FIRST_BYTES = 1 << 16;
    private static final int FACTOR = 16;

    private EventLogTail() {}

    /**
     * Reads the newest events.
     *
     * @param sought reads back until there is one that is
     * @return in their order, the oldest being the one that was sought or an older one; all if none
     *     is; nothing if there is no file
     * @throws IOException if the file cannot be read
     */
    public static List<RunEvent> backTo(Path file, Predicate<RunEvent> sought) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
            long size = channel.size();
            for (long bytes = FIRST_BYTES; ; bytes *= FACTOR) {
                long start = Math.max(0, size - Math.min(bytes, Integer.MAX_VALUE - 8));
                List<RunEvent> events = events(bytes(channel, start, size), start > 0);
                boolean all = start == 0 || bytes >= Integer.MAX_VALUE;
                if (all || events.stream().anyMatch(sought)) {
                    return events;
                }
            }
        } catch (NoSuchFileException e) {
            return List.of();
        }
    }

    private static byte[] bytes(FileChannel channel, long start, long end) throws IOException {
        ByteBuffer buffer = ByteBuffer.allocate((int) (end - start));
        while (buffer.hasRemaining()) {
            if (channel.read(buffer, start + buffer.position()) < 0) {
                break; // another start has cut it
            }
        }
        byte[] bytes = new byte[buffer.position()];
        buffer.flip().get(bytes);
        return bytes;
    }

    /**
     * @param torn whether the first line is only the end of one
     */
    private static List<RunEvent> events(byte[] bytes, boolean torn) {
        List<RunEvent> events = new ArrayList<>();
        int start = 0;
        boolean whole = !torn;
        for (int i = 0; i < bytes.length; i++) {
            if (bytes[i] == '\n') {
                if (whole) {
                    RunEventJson.read(bytes, start, i - start).ifPresent(events::add);
                }
                whole = true;
                start = i + 1;
            }
        }
        return events;
    }
}
