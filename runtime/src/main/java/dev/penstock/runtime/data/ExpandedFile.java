package dev.penstock.runtime.data;

import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.zip.GZIPInputStream;

/**
 * What a {@code .gz} holds, as long as that may be text: a small file can hold more zeros than this
 * machine has memory.
 */
final class ExpandedFile extends FilterInputStream {
    /** Text is compressed three to ten times. */
    private static final long MOST_TIMES = 100;

    /** A short file may well be one word over and over. */
    private static final long ALWAYS_BYTES = 16 << 20;

    private final long most;
    private long expanded;

    private ExpandedFile(InputStream in, long most) {
        super(in);
        this.most = most;
    }

    /**
     * @param raw the bytes of the file
     * @throws IOException if they do not begin as such a file does
     */
    static InputStream of(Path file, InputStream raw) throws IOException {
        long most = Math.max(ALWAYS_BYTES, MOST_TIMES * Files.size(file));
        return new ExpandedFile(new GZIPInputStream(raw, 1 << 16), most);
    }

    @Override
    public int read() throws IOException {
        int c = super.read();
        count(c < 0 ? 0 : 1);
        return c;
    }

    @Override
    public int read(byte[] bytes, int from, int length) throws IOException {
        int count = super.read(bytes, from, length);
        count(Math.max(0, count));
        return count;
    }

    private void count(int bytes) throws IOException {
        expanded += bytes;
        if (expanded > most) {
            throw new IOException(
                    "it expands to more than %d times its size, which no text does; if it is meant, decompress it first"
                            .formatted(MOST_TIMES));
        }
    }
}
