package dev.penstock.runtime.certificates;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.SecureRandom;
import java.security.cert.Certificate;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Stream;

/**
 * Makes the certificates of a cluster's nodes, in a directory:
 *
 * <pre>
 *   ca.pem        the authority: goes to every node
 *   ca.key        signs certificates: stays here, off the nodes
 *   node-1.pem    a node's certificate, valid for its names only
 *   node-1.key    and its key: both go to this node
 * </pre>
 *
 * Keys are elliptic-curve (P-256). All files are readable by their owner alone, and none is ever
 * overwritten.
 */
public final class CertificateAuthority {
    private static final int AUTHORITY_DAYS = 3650;
    private static final String AUTHORITY = "ca";
    private static final String NODE = "node";

    /** Clocks of machines differ. */
    private static final String SINCE_AN_HOUR = "-1H";

    private final Path directory;

    private CertificateAuthority(Path directory) {
        this.directory = directory;
    }

    /**
     * Creates an authority, valid for ten years.
     *
     * @param directory created if missing
     * @throws CertificatesException if there is one already, or the directory cannot be written
     */
    public static CertificateAuthority create(Path directory) {
        NodeFiles own = NodeFiles.ofAuthority(directory);
        requireAbsent(own);
        try {
            if (!Files.isDirectory(directory)) {
                Files.createDirectories(
                        directory,
                        PosixFilePermissions.asFileAttribute(
                                PosixFilePermissions.fromString("rwx------")));
            }
        } catch (IOException e) {
            throw new CertificatesException("cannot create %s: %s".formatted(directory, e), e);
        }
        try (var scratch = Scratch.open()) {
            scratch.keytool()
                    .generate(
                            AUTHORITY,
                            List.of(
                                    "-dname",
                                    "CN=Penstock cluster authority",
                                    "-ext",
                                    "bc:c=ca:true,pathlen:0",
                                    "-ext",
                                    "ku:c=keyCertSign,cRLSign",
                                    "-startdate",
                                    SINCE_AN_HOUR,
                                    "-validity",
                                    "" + AUTHORITY_DAYS));
            scratch.write(AUTHORITY, own);
        }
        return new CertificateAuthority(directory);
    }

    /**
     * Opens the authority of a directory.
     *
     * @throws CertificatesException if there is none
     */
    public static CertificateAuthority open(Path directory) {
        NodeFiles own = NodeFiles.ofAuthority(directory);
        if (!Files.isReadable(own.certificate()) || !Files.isReadable(own.key())) {
            throw new CertificatesException(
                    "no ca.pem and ca.key of an authority in %s; create one with penstock certs init %s"
                            .formatted(directory, directory));
        }
        return new CertificateAuthority(directory);
    }

    /**
     * Makes a node's certificate, good for both ends of a connection.
     *
     * @param node its name: that of the files, and the first that the certificate vouches for
     * @param otherNames further host names or addresses under which others reach the node; a star
     *     may stand for a name's first label
     * @param days of validity
     * @throws CertificatesException if a name is invalid, or the node has a certificate
     */
    public NodeFiles issue(String node, List<String> otherNames, int days) {
        List<String> names = new ArrayList<>(List.of(node));
        names.addAll(otherNames);
        requireNames(
                names.stream().map(name -> name.equals(node) ? name : unstarred(name)).toList());
        NodeFiles files = NodeFiles.in(directory, node);
        requireAbsent(files);
        NodeFiles own = NodeFiles.ofAuthority(directory);
        try (var scratch = Scratch.open()) {
            scratch.put(
                    AUTHORITY, PemFiles.key(own.key()), PemFiles.certificates(own.certificate()));
            scratch.keytool()
                    .generate(
                            NODE,
                            List.of(
                                    "-signer",
                                    AUTHORITY,
                                    "-dname",
                                    "CN=" + node,
                                    "-ext",
                                    HostName.alternativeNames(names),
                                    "-ext",
                                    "bc:c=ca:false",
                                    "-ext",
                                    "eku=serverAuth,clientAuth",
                                    "-ext",
                                    "ku:c=digitalSignature",
                                    "-startdate",
                                    SINCE_AN_HOUR,
                                    "-validity",
                                    "" + days));
            scratch.write(NODE, files);
        }
        return files;
    }

    /**
     * Checks names before anything is created.
     *
     * @throws CertificatesException naming all invalid ones
     */
    public static void requireNames(List<String> names) {
        List<String> wrong =
                names.stream()
                        .filter(name -> name.equals(AUTHORITY) || !HostName.isValid(name))
                        .toList();
        if (!wrong.isEmpty()) {
            throw new CertificatesException(
                    "expected host names or addresses such as node-1.example.org or 10.0.0.5, got %s"
                            .formatted(wrong));
        }
    }

    private static String unstarred(String name) {
        return name.startsWith("*.") ? name.substring(2) : name;
    }

    private static void requireAbsent(NodeFiles files) {
        List<Path> there =
                Stream.of(files.certificate(), files.key()).filter(Files::exists).toList();
        if (!there.isEmpty()) {
            throw new CertificatesException(
                    "%s: already exists, and nothing is overwritten; use another directory or move it away"
                            .formatted(there));
        }
    }

    /** A key store for the duration of one command, under a random password that is never shown. */
    private record Scratch(Path directory, String password) implements AutoCloseable {
        static Scratch open() {
            byte[] random = new byte[24];
            new SecureRandom().nextBytes(random);
            try {
                return new Scratch(
                        Files.createTempDirectory("penstock-certs-"),
                        HexFormat.of().formatHex(random));
            } catch (IOException e) {
                throw new UncheckedIOException("cannot create a directory for temporary files", e);
            }
        }

        private Path file() {
            return directory.resolve("scratch.p12");
        }

        Keytool keytool() {
            return new Keytool(file(), password);
        }

        void put(String alias, PrivateKey key, List<X509Certificate> chain) {
            try (OutputStream out = Files.newOutputStream(file())) {
                KeyStore store = KeyStore.getInstance("PKCS12");
                store.load(null, null);
                store.setKeyEntry(
                        alias, key, password.toCharArray(), chain.toArray(Certificate[]::new));
                store.store(out, password.toCharArray());
            } catch (IOException | GeneralSecurityException e) {
                throw new CertificatesException("the authority cannot sign: " + e.getMessage(), e);
            }
        }

        void write(String alias, NodeFiles files) {
            try (InputStream in = Files.newInputStream(file())) {
                KeyStore store = KeyStore.getInstance("PKCS12");
                store.load(in, password.toCharArray());
                PrivateKey key = (PrivateKey) store.getKey(alias, password.toCharArray());
                X509Certificate certificate = (X509Certificate) store.getCertificate(alias);
                PemFiles.write(files.key(), PemFiles.text(key));
                PemFiles.write(files.certificate(), PemFiles.text(certificate));
            } catch (IOException | GeneralSecurityException e) {
                throw new CertificatesException(
                        "keytool did not produce a certificate: " + e.getMessage(), e);
            }
        }

        @Override
        public void close() {
            try (Stream<Path> files = Files.list(directory)) {
                for (Path file : files.toList()) {
                    Files.delete(file);
                }
                Files.delete(directory);
            } catch (IOException e) {
                throw new UncheckedIOException("cannot remove " + directory, e);
            }
        }
    }
}
