package dev.penstock.actors.journal;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A journal as a text file: a record per line behind the CRC32C of its text, on disk before {@link
 * #append} returns. A kill can tear only the last line; what follows the first line that is not
 * whole is ignored, and cut off when the file is opened for writing.
 *
 * <pre>
 *   8f3c21d0 committed 2 17 0x1.0p0
 * </pre>
 */
public final class JournalFile implements RunJournal, AutoCloseable {
    /** Its name in a run's directory. */
    public static final String NAME = "journal.txt";

    private static final Logger LOG = LoggerFactory.getLogger(JournalFile.class);
    private static final int SUM_DIGITS = 8;

    private final Path file;

    /** Records that are not on disk for certain, in their order. */
    private final List<JournalRecord> unwritten = new ArrayList<>();

    /** Null after a failure, until the file opens again. */
    private @Nullable FileChannel channel;

    /** Up to here, all is on disk. */
    private long wholeBytes;

    private boolean failing;

    private JournalFile(Path file, FileChannel channel, long wholeBytes) {
        this.file = file;
        this.channel = channel;
        this.wholeBytes = wholeBytes;
    }

    /**
     * Goes on behind the last whole record of a journal, or begins one.
     *
     * @throws UncheckedIOException if that cannot be done
     */
    public static JournalFile open(Path file) {
        try {
            long whole = wholeBytes(file);
            return new JournalFile(file, openBehind(file, whole), whole);
        } catch (IOException e) {
            throw new UncheckedIOException("cannot write the journal " + file, e);
        }
    }

    private static FileChannel openBehind(Path file, long whole) throws IOException {
        FileChannel channel =
                FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
        channel.truncate(whole);
        channel.position(Math.min(whole, channel.size()));
        return channel;
    }

    @Override
    public void append(JournalRecord record) {
        if (record instanceof JournalRecord.Committed
                && !unwritten.isEmpty()
                && unwritten.getLast() instanceof JournalRecord.Committed) {
            unwritten.removeLast(); // a later commit says all that it said
        }
        unwritten.add(record);
        try {
            write();
            if (failing) {
                failing = false;
                LOG.info("{}: is written again, and lacks nothing", file);
            }
        } catch (IOException e) {
            close();
            channel = null;
            if (!failing) {
                failing = true;
                LOG.error(
                        "{}: cannot be written, which is tried again with every step; if the"
                                + " supervisor dies before that, the run goes back to its last"
                                + " checkpoint",
                        file,
                        e);
            }
        }
    }

    /** All that is not on disk, behind what is. */
    private void write() throws IOException {
        FileChannel open = channel;
        if (open == null) {
            open = openBehind(file, wholeBytes);
            channel = open;
        }
        var text = new StringBuilder();
        for (JournalRecord record : unwritten) {
            String line = JournalText.print(record);
            text.append(sum(line)).append(' ').append(line).append('\n');
        }
        ByteBuffer bytes = ByteBuffer.wrap(text.toString().getBytes(UTF_8));
        while (bytes.hasRemaining()) {
            open.write(bytes);
        }
        open.force(false);
        wholeBytes = open.position();
        unwritten.clear();
    }

    /**
     * All records up to the first that is not whole; none if there is no file.
     *
     * @throws UncheckedIOException if the file cannot be read
     */
    public static List<JournalRecord> read(Path file) {
        List<JournalRecord> records = new ArrayList<>();
        try {
            for (String line : wholeLines(file)) {
                records.add(record(line).orElseThrow());
            }
            return records;
        } catch (IOException e) {
            throw new UncheckedIOException("cannot read the journal " + file, e);
        }
    }

    /** Whether something that is no record lies behind the last one that is whole. */
    public static boolean isTorn(Path file) {
        try {
            return Files.exists(file) && wholeBytes(file) < Files.size(file);
        } catch (IOException e) {
            throw new UncheckedIOException("cannot read the journal " + file, e);
        }
    }

    private static long wholeBytes(Path file) throws IOException {
        return wholeLines(file).stream().mapToLong(line -> line.getBytes(UTF_8).length + 1L).sum();
    }

    private static List<String> wholeLines(Path file) throws IOException {
        List<String> lines = new ArrayList<>();
        String text;
        try {
            text = new String(Files.readAllBytes(file), UTF_8); // torn bytes are no reason to fail
        } catch (NoSuchFileException e) {
            return lines;
        }
        int from = 0;
        for (int end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', from)) {
            String line = text.substring(from, end);
            if (record(line).isEmpty()) {
                return lines;
            }
            lines.add(line);
            from = end + 1;
        }
        return lines;
    }

    private static Optional<JournalRecord> record(String line) {
        if (line.length() <= SUM_DIGITS + 1) {
            return Optional.empty();
        }
        String text = line.substring(SUM_DIGITS + 1);
        return line.startsWith(sum(text) + " ") ? JournalText.parse(text) : Optional.empty();
    }

    private static String sum(String text) {
        var crc = new CRC32C();
        crc.update(text.getBytes(UTF_8));
        return "%08x".formatted(crc.getValue());
    }

    @Override
    public void close() {
        FileChannel open = channel;
        if (open == null) {
            return;
        }
        try {
            open.close();
        } catch (IOException e) {
            LOG.warn("closing {}", file, e);
        }
    }
}
