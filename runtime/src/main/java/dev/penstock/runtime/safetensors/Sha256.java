package dev.penstock.runtime.safetensors;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/** A SHA-256 in progress; hexadecimal, lower-case. */
public final class Sha256 {
    private static final int CHUNK_BYTES = 1 << 20;

    private final MessageDigest digest;

    Sha256() {
        try {
            digest = MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new AssertionError("every Java platform has SHA-256", e);
        }
    }

    /** Adds memory; stops early, with a useless result, if the thread is interrupted. */
    void update(MemorySegment part) {
        for (long at = 0; at < part.byteSize() && !Thread.currentThread().isInterrupted(); ) {
            long bytes = Math.min(CHUNK_BYTES, part.byteSize() - at);
            digest.update(part.asSlice(at, bytes).asByteBuffer());
            at += bytes;
        }
    }

    /** Finishes the hash. */
    String hex() {
        return HexFormat.of().formatHex(digest.digest());
    }

    /** Returns the hash of a text in UTF-8. */
    public static String of(String text) {
        Sha256 hash = new Sha256();
        hash.digest.update(text.getBytes(StandardCharsets.UTF_8));
        return hash.hex();
    }

    /** Returns the hash of a file's bytes as the disk returns them. */
    public static String ofFile(Path path) {
        Sha256 hash = new Sha256();
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
            ByteBuffer chunk = ByteBuffer.allocateDirect(CHUNK_BYTES);
            while (channel.read(chunk) >= 0) {
                hash.digest.update(chunk.flip());
                chunk.clear();
            }
        } catch (IOException e) {
            throw StoredFileException.of(path, "read the file", e);
        }
        return hash.hex();
    }
}
