package dev.penstock.actors.journal;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.nio.file.StandardCopyOption.ATOMIC_MOVE;
import static java.nio.file.StandardCopyOption.REPLACE_EXISTING;
import static java.nio.file.StandardOpenOption.APPEND;
import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.TRUNCATE_EXISTING;
import static java.nio.file.StandardOpenOption.WRITE;

import dev.penstock.actors.journal.JournalRecord.Published;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A journal as a text file: a record per line behind the CRC32C of its text, on disk before {@link
 * #append} returns. A kill can tear only the last line. What follows the first line that is not
 * whole is ignored when the journal is read, and moved to {@value #DAMAGED} when it is opened.
 *
 * <pre>
 *   8f3c21d0 committed 2 17 0x1.0p0
 * </pre>
 *
 * Opening copies the whole lines into a file that takes the place of the old one. A supervisor that
 * is believed dead and wakes up has the old file open: what it writes, nobody reads, and it is told
 * so before it acts on it. One that has grown beyond a limit is opened anew by its own writer with
 * no more in it than what a supervisor needs, when a checkpoint is complete.
 */
public final class JournalFile implements RunJournal, AutoCloseable {
    /** Its name in a run's directory. */
    public static final String NAME = "journal.txt";

    private static final Logger LOG = LoggerFactory.getLogger(JournalFile.class);
    private static final int SUM_DIGITS = 8;
    private static final long USUAL_LIMIT_BYTES = 1 << 20;

    /** Its name in a run's directory, behind the journal's own: lines that were cut off. */
    private static final String DAMAGED = ".damaged";

    private final Path file;

    /** Records that are not on disk for certain, in their order. */
    private final List<JournalRecord> unwritten = new ArrayList<>();

    /** Null after a failure, until the file opens again. */
    private @Nullable FileChannel channel;

    private final long limitBytes;

    /** Of the file system, for the file that this journal is; null where it has none. */
    private @Nullable Object identity;

    /** Up to here, all is on disk. */
    private long wholeBytes;

    private boolean failing;

    private JournalFile(Path file, long limitBytes, FileChannel channel) throws IOException {
        this.file = file;
        this.limitBytes = limitBytes;
        use(channel);
    }

    private void use(FileChannel open) throws IOException {
        channel = open;
        identity = identity(file);
        wholeBytes = open.position();
    }

    private static @Nullable Object identity(Path file) throws IOException {
        return Files.readAttributes(file, BasicFileAttributes.class).fileKey();
    }

    /**
     * Goes on behind the last whole record of a journal, or begins one.
     *
     * @throws UncheckedIOException if that cannot be done
     */
    public static JournalFile open(Path file) {
        return open(file, USUAL_LIMIT_BYTES);
    }

    /**
     * @param limitBytes beyond it, the file is made anew with the next checkpoint
     */
    static JournalFile open(Path file, long limitBytes) {
        try {
            byte[] all = bytesOf(file);
            int whole = wholeBytes(all);
            if (whole < all.length) {
                Files.write(
                        file.resolveSibling(file.getFileName() + DAMAGED),
                        Arrays.copyOfRange(all, whole, all.length),
                        CREATE,
                        APPEND);
            }
            return new JournalFile(file, limitBytes, replace(file, Arrays.copyOf(all, whole)));
        } catch (IOException e) {
            throw new UncheckedIOException("cannot write the journal " + file, e);
        }
    }

    /** A file of these bytes takes its place, durably. */
    private static FileChannel replace(Path file, byte[] bytes) throws IOException {
        Path next = file.resolveSibling(file.getFileName() + ".next");
        FileChannel channel = FileChannel.open(next, CREATE, TRUNCATE_EXISTING, WRITE);
        try {
            write(channel, bytes);
            channel.force(true);
            Files.move(next, file, ATOMIC_MOVE, REPLACE_EXISTING);
            try (FileChannel entries = FileChannel.open(file.toAbsolutePath().getParent(), READ)) {
                entries.force(true);
            }
            return channel;
        } catch (IOException e) {
            channel.close();
            throw e;
        }
    }

    private static void write(FileChannel channel, byte[] bytes) throws IOException {
        ByteBuffer left = ByteBuffer.wrap(bytes);
        while (left.hasRemaining()) {
            channel.write(left);
        }
    }

    @Override
    public void append(List<JournalRecord> records) {
        records.forEach(this::addUnwritten);
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
        if (isTaken()) {
            throw new JournalTakenException(file);
        }
    }

    private void addUnwritten(JournalRecord record) {
        if (record instanceof JournalRecord.Committed
                && !unwritten.isEmpty()
                && unwritten.getLast() instanceof JournalRecord.Committed last
                && !last.skips()) {
            unwritten.removeLast(); // a later commit says all that it said
        }
        unwritten.add(record);
    }

    /**
     * Whether another supervisor has begun a journal in this one's place. What this one has written
     * since then is known to nobody, so nobody may act on it.
     */
    public boolean isTaken() {
        try {
            var there = Files.readAttributes(file, BasicFileAttributes.class);
            return there.isRegularFile() && !Objects.equals(there.fileKey(), identity);
        } catch (IOException e) {
            LOG.debug("{} is gone, and no other is there", file, e);
            return false;
        }
    }

    /** All that is not on disk, behind what is. */
    private void write() throws IOException {
        FileChannel open = channel;
        if (open == null) {
            open = reopen();
            channel = open;
        }
        write(open, text(unwritten));
        open.force(false);
        wholeBytes = open.position();
        boolean checkpoint = unwritten.stream().anyMatch(Published.class::isInstance);
        unwritten.clear();
        if (checkpoint && wholeBytes > limitBytes) {
            shorten(open);
        }
    }

    private FileChannel reopen() throws IOException {
        if (!Objects.equals(identity(file), identity)) {
            throw new IOException("another file is in its place");
        }
        FileChannel open = FileChannel.open(file, WRITE);
        open.truncate(wholeBytes);
        open.position(wholeBytes);
        return open;
    }

    /** All is on disk, so that a failure costs nothing. */
    private void shorten(FileChannel former) {
        try {
            if (Objects.equals(identity(file), identity)) {
                List<JournalRecord> needed =
                        JournalledRun.of(read(file)).map(JournalledRun::records).orElseThrow();
                use(replace(file, text(needed)));
                former.close();
            }
        } catch (IOException | UncheckedIOException e) {
            LOG.warn("{}: cannot be shortened, which is tried again later", file, e);
        }
    }

    private static byte[] text(List<JournalRecord> records) {
        var text = new StringBuilder();
        for (JournalRecord record : records) {
            String line = JournalText.print(record);
            text.append(sum(line)).append(' ').append(line).append('\n');
        }
        return text.toString().getBytes(UTF_8);
    }

    /**
     * All records up to the first that is not whole; none if there is no file.
     *
     * @throws UncheckedIOException if the file cannot be read
     */
    public static List<JournalRecord> read(Path file) {
        try {
            byte[] all = bytesOf(file);
            return records(all, 0, wholeBytes(all));
        } catch (IOException e) {
            throw new UncheckedIOException("cannot read the journal " + file, e);
        }
    }

    /**
     * Records behind the first line that is not whole. They are no part of what is known, for
     * something is missing before them; but epochs that they name have been used.
     *
     * @return empty if there is nothing behind the last whole line, else what is still readable
     * @throws UncheckedIOException if the file cannot be read
     */
    public static Optional<List<JournalRecord>> behindDamage(Path file) {
        try {
            byte[] all = bytesOf(file);
            int whole = wholeBytes(all);
            return whole == all.length
                    ? Optional.empty()
                    : Optional.of(records(all, whole, all.length));
        } catch (IOException e) {
            throw new UncheckedIOException("cannot read the journal " + file, e);
        }
    }

    private static byte[] bytesOf(Path file) throws IOException {
        try {
            return Files.readAllBytes(file);
        } catch (NoSuchFileException e) {
            return new byte[0];
        }
    }

    /** Up to the first line that is no record. */
    private static int wholeBytes(byte[] all) {
        int from = 0;
        for (int end = 0; end < all.length; end++) {
            if (all[end] == '\n') {
                if (record(new String(all, from, end - from, UTF_8)).isEmpty()) {
                    return from;
                }
                from = end + 1;
            }
        }
        return from;
    }

    private static List<JournalRecord> records(byte[] all, int from, int to) {
        return new String(all, from, to - from, UTF_8)
                .lines()
                .flatMap(line -> record(line).stream())
                .toList();
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
