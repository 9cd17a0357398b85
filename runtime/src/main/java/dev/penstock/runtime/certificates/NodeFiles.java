package dev.penstock.runtime.certificates;

import java.nio.file.Path;

/**
 * The files with which a node proves its identity and checks others; all PEM.
 *
 * @param certificate of the node, and of those between it and the authority if there are any
 * @param key of the certificate, PKCS #8 without a password
 * @param authority whose signature is trusted; there may be several in the file
 */
public record NodeFiles(Path certificate, Path key, Path authority) {
    private static final String AUTHORITY = "ca";
    static final String CERTIFICATE_END = ".pem";
    static final String KEY_END = ".key";

    /** The files of a node in the layout of {@link CertificateAuthority}'s directory. */
    static NodeFiles in(Path directory, String node) {
        String name = node.replace(':', '_');
        return new NodeFiles(
                directory.resolve(name + CERTIFICATE_END),
                directory.resolve(name + KEY_END),
                directory.resolve(AUTHORITY + CERTIFICATE_END));
    }

    /** The files of the authority itself, as if it were a node. */
    static NodeFiles ofAuthority(Path directory) {
        return in(directory, AUTHORITY);
    }

    /**
     * The files that belong to a certificate made by {@link CertificateAuthority}: its key and the
     * authority are next to it.
     */
    public static NodeFiles beside(Path certificate) {
        String file = String.valueOf(certificate.getFileName());
        String node =
                file.endsWith(CERTIFICATE_END)
                        ? file.substring(0, file.length() - CERTIFICATE_END.length())
                        : file;
        NodeFiles siblings = in(certificate.toAbsolutePath().normalize().resolveSibling(""), node);
        return new NodeFiles(certificate, siblings.key, siblings.authority);
    }
}
