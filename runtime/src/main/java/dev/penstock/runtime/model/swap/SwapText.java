package dev.penstock.runtime.model.swap;

import static java.nio.file.StandardCopyOption.ATOMIC_MOVE;
import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.TRUNCATE_EXISTING;
import static java.nio.file.StandardOpenOption.WRITE;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.zip.CRC32C;

/** Small files, and renamed ones, that are whole or not there. */
final class SwapText {
    /** Ends the name of what is to replace a file. */
    static final String NEXT = ".next";

    private SwapText() {}

    /** Replaces a text, with its sum behind it; durable when this returns. */
    static void write(Path file, String text) throws IOException {
        Path aside = file.resolveSibling(file.getFileName() + NEXT);
        try (FileChannel channel = FileChannel.open(aside, CREATE, TRUNCATE_EXISTING, WRITE)) {
            ByteBuffer bytes = StandardCharsets.UTF_8.encode(text + "\n" + sum(text));
            while (bytes.hasRemaining()) {
                channel.write(bytes);
            }
            channel.force(true);
        }
        move(aside, file);
    }

    /**
     * Reads a text.
     *
     * @throws IOException if there is none, or another one than was written
     */
    static String read(Path file) throws IOException {
        String all = Files.readString(file);
        int end = all.lastIndexOf('\n');
        if (end < 0 || !all.substring(end + 1).equals(sum(all.substring(0, end)))) {
            throw new IOException(file + " is torn");
        }
        return all.substring(0, end);
    }

    private static String sum(String text) {
        var sum = new CRC32C();
        sum.update(text.getBytes(StandardCharsets.UTF_8));
        return Long.toHexString(sum.getValue());
    }

    /** Replaces a file by another of the same folder; durable when this returns. */
    static void move(Path from, Path to) throws IOException {
        Files.move(from, to, ATOMIC_MOVE);
        try (FileChannel folder =
                FileChannel.open(to.toAbsolutePath().resolve("..").normalize(), READ)) {
            folder.force(true);
        }
    }
}
