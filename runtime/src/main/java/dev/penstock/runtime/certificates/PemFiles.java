package dev.penstock.runtime.certificates;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SeekableByteChannel;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFileAttributeView;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Certificates and keys as text (RFC 7468). */
final class PemFiles {
    /** Far above any chain; a file of another kind is not read to its end. */
    private static final long MOST_BYTES = 1 << 20;

    private static final Set<PosixFilePermission> FOR_OTHERS =
            EnumSet.of(
                    PosixFilePermission.GROUP_WRITE,
                    PosixFilePermission.OTHERS_READ,
                    PosixFilePermission.OTHERS_WRITE);

    private static final Pattern KEY =
            Pattern.compile(
                    "-----BEGIN PRIVATE KEY-----([A-Za-z0-9+/=\\s]+)-----END PRIVATE KEY-----");

    private PemFiles() {}

    /** Reads all certificates of a file, at least one. */
    static List<X509Certificate> certificates(Path file) {
        try {
            List<X509Certificate> found =
                    CertificateFactory.getInstance("X.509")
                            .generateCertificates(new ByteArrayInputStream(bytes(file)))
                            .stream()
                            .map(X509Certificate.class::cast)
                            .toList();
            if (found.isEmpty()) {
                throw new CertificatesException(
                        "%s: expected a certificate (PEM), got none".formatted(file));
            }
            return found;
        } catch (CertificateException e) {
            throw new CertificatesException(
                    "%s: expected a certificate (PEM), got: %s".formatted(file, e.getMessage()), e);
        }
    }

    /**
     * Reads the key of a file that no other user can read: elliptic curve or RSA. As ssh does,
     * except that a group may read it: so a pod gets its secrets.
     */
    static PrivateKey key(Path file) {
        PrivateKey key = keyForAnybody(file);
        openness(file)
                .ifPresent(
                        permissions -> {
                            throw new CertificatesException(
                                    "%s: expected a private key that only its owner can read, got permissions %s; try chmod 600 %s"
                                            .formatted(file, permissions, file));
                        });
        return key;
    }

    /** Reads the key of a file, whoever else can do so. */
    static PrivateKey keyForAnybody(Path file) {
        Matcher pem = KEY.matcher(new String(bytes(file), US_ASCII));
        if (!pem.find()) {
            throw new CertificatesException(
                    "%s: expected a private key (PEM, PKCS #8, no password), got none; try openssl pkcs8 -topk8 -nocrypt"
                            .formatted(file));
        }
        try {
            var encoded = new PKCS8EncodedKeySpec(Base64.getMimeDecoder().decode(pem.group(1)));
            for (String algorithm : List.of("EC", "RSA", "EdDSA")) {
                try {
                    return KeyFactory.getInstance(algorithm).generatePrivate(encoded);
                } catch (InvalidKeySpecException e) {
                    // the key is for another algorithm
                }
            }
        } catch (IllegalArgumentException | GeneralSecurityException e) {
            throw new CertificatesException(
                    "%s: expected a private key, got: %s".formatted(file, e.getMessage()), e);
        }
        throw new CertificatesException(
                "%s: expected an elliptic-curve or RSA key, got something else".formatted(file));
    }

    /** The permissions of a file that others can read or replace; empty if they cannot. */
    static Optional<String> openness(Path file) {
        try {
            PosixFileAttributeView view =
                    Files.getFileAttributeView(file, PosixFileAttributeView.class);
            if (view == null) {
                return Optional.empty(); // not a system with such permissions
            }
            Set<PosixFilePermission> permissions = view.readAttributes().permissions();
            return Collections.disjoint(permissions, FOR_OTHERS)
                    ? Optional.empty()
                    : Optional.of(PosixFilePermissions.toString(permissions));
        } catch (IOException e) {
            throw new CertificatesException("cannot read %s: %s".formatted(file, e), e);
        }
    }

    private static byte[] bytes(Path file) {
        try {
            if (Files.size(file) > MOST_BYTES) {
                throw new CertificatesException(
                        "%s: expected PEM of less than 1 MiB, got %d bytes"
                                .formatted(file, Files.size(file)));
            }
            return Files.readAllBytes(file);
        } catch (IOException e) {
            throw new CertificatesException("cannot read %s: %s".formatted(file, e), e);
        }
    }

    static String text(X509Certificate certificate) throws CertificateException {
        return pem("CERTIFICATE", certificate.getEncoded());
    }

    static String text(PrivateKey key) {
        return pem("PRIVATE KEY", key.getEncoded());
    }

    private static String pem(String what, byte[] der) {
        String body = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(der);
        return "-----BEGIN %s-----\n%s\n-----END %s-----\n".formatted(what, body, what);
    }

    /** Writes a new file that only its owner can read, from the first byte on. */
    static void write(Path file, String text) {
        try (SeekableByteChannel channel =
                Files.newByteChannel(
                        file,
                        Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE),
                        PosixFilePermissions.asFileAttribute(
                                PosixFilePermissions.fromString("rw-------")))) {
            ByteBuffer bytes = US_ASCII.encode(text);
            while (bytes.hasRemaining()) {
                channel.write(bytes);
            }
        } catch (FileAlreadyExistsException e) {
            throw new CertificatesException(
                    "%s already exists, and nothing is overwritten; use another directory or move it away"
                            .formatted(file),
                    e);
        } catch (IOException e) {
            throw new CertificatesException("cannot write %s: %s".formatted(file, e), e);
        }
    }
}
