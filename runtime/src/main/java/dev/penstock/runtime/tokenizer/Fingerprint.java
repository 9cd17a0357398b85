package dev.penstock.runtime.tokenizer;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;

/** A name for what a tokenizer does that does not depend on where its files are. */
final class Fingerprint {
    private Fingerprint() {}

    /** Returns the SHA-256 of these files and of what else decides about tokens. */
    static String of(List<Path> files, String beside) {
        try {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            for (Path file : files) {
                try (InputStream in = Files.newInputStream(file)) {
                    byte[] buffer = new byte[1 << 16];
                    for (int read = in.read(buffer); read >= 0; read = in.read(buffer)) {
                        digest.update(buffer, 0, read);
                    }
                } catch (IOException e) {
                    throw JsonFiles.unreadable(file, e);
                }
            }
            digest.update(beside.getBytes(StandardCharsets.UTF_8));
            return HexFormat.of().formatHex(digest.digest());
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("this Java has no SHA-256", e);
        }
    }
}
