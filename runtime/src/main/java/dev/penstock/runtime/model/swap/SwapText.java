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

/** Small files, and renamed ones, that are whole or not there. */
final class SwapText {
    private SwapText() {}

    /** Replaces a text; durable when this returns. */
    static void write(Path file, String text) throws IOException {
        Path aside = file.resolveSibling(file.getFileName() + ".next");
        try (FileChannel channel = FileChannel.open(aside, CREATE, TRUNCATE_EXISTING, WRITE)) {
            ByteBuffer bytes = StandardCharsets.UTF_8.encode(text);
            while (bytes.hasRemaining()) {
                channel.write(bytes);
            }
            channel.force(true);
        }
        move(aside, file);
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
