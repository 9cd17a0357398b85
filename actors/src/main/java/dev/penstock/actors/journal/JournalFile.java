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
    private final FileChannel channel;
    private boolean broken;

    private JournalFile(Path file, FileChannel channel) {
        this.file = file;
        this.channel = channel;
    }

    /**
     * Goes on behind the last whole record of a journal, or begins one.
     *
     * @throws UncheckedIOException if that cannot be done
     */
    public static JournalFile open(Path file) {
        try {
            long whole = wholeBytes(file);
            FileChannel channel =
                    FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
            channel.truncate(whole);
            channel.position(whole);
            return new JournalFile(file, channel);
        } catch (IOException e) {
            throw new UncheckedIOException("cannot write the journal " + file, e);
        }
    }

    @Override
    public void append(JournalRecord record) {
        if (broken) {
            return;
        }
        String text = JournalText.print(record);
        ByteBuffer line = ByteBuffer.wrap((sum(text) + " " + text + "\n").getBytes(UTF_8));
        try {
            while (line.hasRemaining()) {
                channel.write(line);
            }
            channel.force(false);
        } catch (IOException e) {
            broken = true;
            LOG.error(
                    "{}: cannot be written any more; if the supervisor dies, the run goes back to its last checkpoint",
                    file,
                    e);
        }
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
        try {
            channel.close();
        } catch (IOException e) {
            LOG.warn("closing {}", file, e);
        }
    }
}
