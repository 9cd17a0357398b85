package dev.penstock.runtime.certificates;

import java.io.IOException;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.Signature;
import java.security.cert.Certificate;
import java.security.cert.CertificateException;
import java.security.cert.CertificateParsingException;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.stream.Stream;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509TrustManager;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A node's certificate with its key and the authorities that the node trusts.
 *
 * @param chain the node's own first
 * @param authorities at least one
 */
public record NodeCertificate(
        List<X509Certificate> chain, PrivateKey key, List<X509Certificate> authorities) {
    private static final Logger LOG = LoggerFactory.getLogger(NodeCertificate.class);

    /**
     * Types of alternative names in a certificate: host names and addresses (RFC 5280, 4.2.1.6).
     */
    private static final int DNS_NAME = 2;

    private static final int IP_ADDRESS = 7;

    public NodeCertificate {
        chain = List.copyOf(chain);
        authorities = List.copyOf(authorities);
    }

    /**
     * Reads a node's files.
     *
     * @throws CertificatesException naming the file that is not as expected
     */
    public static NodeCertificate read(NodeFiles files) {
        return new NodeCertificate(
                PemFiles.certificates(files.certificate()),
                PemFiles.key(files.key()),
                PemFiles.certificates(files.authority()));
    }

    /** Reads a {@link LocalCertificate}, which some file systems cannot protect. */
    static NodeCertificate readLocal(NodeFiles files) {
        PemFiles.openness(files.key())
                .ifPresent(
                        permissions ->
                                LOG.warn(
                                        "{} has permissions {}: other users of this machine can take part in what this user runs here",
                                        files.key(),
                                        permissions));
        List<X509Certificate> own = PemFiles.certificates(files.certificate());
        return new NodeCertificate(own, PemFiles.keyForAnybody(files.key()), own);
    }

    /**
     * Returns the reasons why other nodes would refuse this one, found before any of them does.
     *
     * @param host under which others reach this node
     * @return sentences; empty if all is well
     */
    public List<String> problemsAt(String host) {
        List<String> problems = new ArrayList<>();
        X509Certificate own = chain.getFirst();
        if (!isPairWith(own)) {
            problems.add("the key does not belong to the certificate");
        }
        try {
            X509TrustManager trust = trust();
            X509Certificate[] path = chain.toArray(X509Certificate[]::new);
            trust.checkServerTrusted(path, "UNKNOWN");
            trust.checkClientTrusted(path, "UNKNOWN");
        } catch (CertificateException e) {
            problems.add(
                    "the certificate of %s, valid from %s to %s, is not accepted under this authority: %s"
                            .formatted(
                                    own.getSubjectX500Principal(),
                                    own.getNotBefore().toInstant(),
                                    own.getNotAfter().toInstant(),
                                    e.getMessage()));
        } catch (GeneralSecurityException | IOException e) {
            problems.add("the authority cannot be used: " + e.getMessage());
        }
        List<String> names = names();
        if (names.stream().noneMatch(name -> HostName.covers(name, host))) {
            problems.add(
                    "the certificate is for %s, but others reach this node as %s"
                            .formatted(names, host));
        }
        return problems;
    }

    /** Returns the host names and addresses that the certificate vouches for. */
    public List<String> names() {
        try {
            Collection<List<?>> names = chain.getFirst().getSubjectAlternativeNames();
            return names == null
                    ? List.of()
                    : names.stream()
                            .filter(
                                    name ->
                                            name.get(0).equals(DNS_NAME)
                                                    || name.get(0).equals(IP_ADDRESS))
                            .map(name -> String.valueOf(name.get(1)))
                            .toList();
        } catch (CertificateParsingException e) {
            return List.of();
        }
    }

    private boolean isPairWith(X509Certificate certificate) {
        String algorithm =
                switch (key.getAlgorithm()) {
                    case "EC" -> "SHA256withECDSA";
                    case "RSA" -> "SHA256withRSA";
                    default -> key.getAlgorithm();
                };
        try {
            byte[] words = certificate.getSignature();
            Signature signature = Signature.getInstance(algorithm);
            signature.initSign(key);
            signature.update(words);
            byte[] signed = signature.sign();
            signature.initVerify(certificate.getPublicKey());
            signature.update(words);
            return signature.verify(signed);
        } catch (GeneralSecurityException e) {
            return false; // the key is for another algorithm
        }
    }

    /** Returns the context that proves this node and checks others, in TLS 1.3. */
    public SSLContext context() {
        try {
            KeyStore keys = emptyStore();
            char[] nobodyReads = new char[0]; // the store never leaves the memory
            keys.setKeyEntry("node", key, nobodyReads, chain.toArray(Certificate[]::new));
            KeyManagerFactory own =
                    KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
            own.init(keys, nobodyReads);
            SSLContext context = SSLContext.getInstance("TLSv1.3");
            context.init(own.getKeyManagers(), new TrustManager[] {trust()}, null);
            return context;
        } catch (GeneralSecurityException | IOException e) {
            throw new CertificatesException(
                    "TLS cannot use this certificate: " + e.getMessage(), e);
        }
    }

    private X509TrustManager trust() throws GeneralSecurityException, IOException {
        KeyStore trusted = emptyStore();
        for (int i = 0; i < authorities.size(); i++) {
            trusted.setCertificateEntry("authority-" + i, authorities.get(i));
        }
        TrustManagerFactory factory =
                TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init(trusted);
        return Stream.of(factory.getTrustManagers())
                .filter(X509TrustManager.class::isInstance)
                .map(X509TrustManager.class::cast)
                .findFirst()
                .orElseThrow(
                        () ->
                                new IllegalStateException(
                                        "no X.509 among "
                                                + Arrays.toString(factory.getTrustManagers())));
    }

    /**
     * Of the old kind, which hides a key under a password with one round of SHA-1: PKCS #12 would
     * encrypt in ten thousand rounds what stays in the memory, in a JVM that has compiled nothing.
     */
    private static KeyStore emptyStore() throws GeneralSecurityException, IOException {
        KeyStore store = KeyStore.getInstance("JKS");
        store.load(null, null);
        return store;
    }
}
