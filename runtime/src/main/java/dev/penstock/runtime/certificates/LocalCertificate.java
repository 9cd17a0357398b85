package dev.penstock.runtime.certificates;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.GeneralSecurityException;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;

/**
 * With what the processes of one user on one machine know each other: a key in a folder that nobody
 * else can read, and its certificate. Whoever holds the key is trusted, at any address; other users
 * of the machine reach the same ports and are refused.
 */
public final class LocalCertificate {
    private static final Path OF_USER = Path.of(".penstock", "local");

    private LocalCertificate() {}

    /**
     * Returns the files of this user, which are made on first use.
     *
     * @throws CertificatesException if they cannot be made
     */
    public static NodeFiles ofUser() {
        return ofHome(Path.of(System.getProperty("user.home")));
    }

    static NodeFiles ofHome(Path home) {
        if (!home.isAbsolute()) {
            throw new CertificatesException(
                    "expected this user to have a home directory, where the key of local clusters is kept, got %s; set HOME"
                            .formatted(home));
        }
        Path folder = home.resolve(OF_USER);
        if (!Files.exists(folder)) {
            make(folder);
        }
        return in(folder);
    }

    /**
     * Makes files that no process has had before, in the place of others.
     *
     * @throws CertificatesException if they cannot be made
     */
    public static NodeFiles fresh(Path folder) {
        remove(folder);
        make(folder);
        return in(folder);
    }

    /** Returns the files of a folder that another process has made. */
    public static NodeFiles in(Path folder) {
        Path certificate = folder.resolve("local" + NodeFiles.CERTIFICATE_END);
        return new NodeFiles(certificate, folder.resolve("local" + NodeFiles.KEY_END), certificate);
    }

    /** In one piece: of several processes that do this at a time, one has its files there. */
    private static void make(Path folder) {
        Path parent =
                Objects.requireNonNull(folder.toAbsolutePath().getParent(), "a folder of its own");
        try {
            if (!Files.isDirectory(parent)) {
                Files.createDirectories(
                        parent,
                        PosixFilePermissions.asFileAttribute(
                                PosixFilePermissions.fromString("rwx------")));
            }
            Path unfinished = Files.createTempDirectory(parent, ".unfinished-");
            NodeFiles files = in(unfinished);
            SelfSigned made = SelfSigned.make("penstock");
            PemFiles.write(files.key(), PemFiles.text(made.key()));
            PemFiles.write(files.certificate(), PemFiles.text(made.certificate()));
            try {
                Files.move(unfinished, folder, StandardCopyOption.ATOMIC_MOVE);
            } catch (IOException e) {
                remove(unfinished);
                if (!Files.exists(in(folder).key())) {
                    throw e;
                }
            }
        } catch (IOException | GeneralSecurityException e) {
            throw new CertificatesException(
                    "cannot make the key with which local processes know each other in %s: %s"
                            .formatted(folder, e),
                    e);
        }
    }

    /** Removes what {@link #fresh} made. */
    public static void remove(Path folder) {
        if (!Files.exists(folder)) {
            return;
        }
        try (Stream<Path> files = Files.walk(folder)) {
            List<Path> deepestFirst = files.sorted(Comparator.reverseOrder()).toList();
            for (Path file : deepestFirst) {
                Files.deleteIfExists(file);
            }
        } catch (IOException | UncheckedIOException e) {
            throw new CertificatesException("cannot remove %s: %s".formatted(folder, e), e);
        }
    }
}
