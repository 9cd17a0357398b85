package dev.penstock.runtime.checkpoint;

import static java.nio.file.StandardCopyOption.ATOMIC_MOVE;
import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.TRUNCATE_EXISTING;
import static java.nio.file.StandardOpenOption.WRITE;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/** File operations whose results are on disk when they return. */
public final class DurableFiles {
    /** Ends the name of a file that is not whole. */
    static final String ASIDE = ".incomplete";

    private DurableFiles() {}

    /** Replaces a small text file as a whole: readers see the old text or the new one. */
    public static void write(Path file, String text) throws IOException {
        writeAside(file, text);
        move(aside(file), file);
    }

    /** Writes and flushes a small text that is to replace a file, beside it. */
    static void writeAside(Path file, String text) throws IOException {
        try (FileChannel channel =
                FileChannel.open(aside(file), WRITE, CREATE, TRUNCATE_EXISTING)) {
            ByteBuffer bytes = StandardCharsets.UTF_8.encode(text);
            while (bytes.hasRemaining()) {
                channel.write(bytes);
            }
            channel.force(true);
        }
    }

    /** Returns the name that a file has until it is whole. */
    static Path aside(Path file) {
        return file.resolveSibling(file.getFileName() + ASIDE);
    }

    /** Renames within a folder and flushes the folder. */
    static void move(Path from, Path to) throws IOException {
        Files.move(from, to, ATOMIC_MOVE);
        syncFolder(folderOf(to));
    }

    /** Returns the folder that holds a file. */
    public static Path folderOf(Path file) {
        return file.toAbsolutePath().resolve("..").normalize();
    }

    /** Flushes a folder's entries. */
    public static void syncFolder(Path folder) throws IOException {
        try (FileChannel channel = FileChannel.open(folder, READ)) {
            channel.force(true);
        }
    }

    /** Removes a folder with everything in it, if it exists; of a symbolic link, the link. */
    public static void delete(Path folder) throws IOException {
        try (Stream<Path> walk = Files.walk(folder)) {
            List<Path> deepestFirst = walk.sorted(Comparator.reverseOrder()).toList();
            for (Path path : deepestFirst) {
                Files.deleteIfExists(path);
            }
        } catch (NoSuchFileException e) {
            // already removed, or it never existed
        } catch (UncheckedIOException e) {
            throw e.getCause();
        }
    }
}
