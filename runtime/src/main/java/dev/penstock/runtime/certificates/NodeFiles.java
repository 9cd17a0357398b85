package dev.penstock.runtime.certificates;

import java.nio.file.Path;

/**
 * What a node needs to prove who it is and to check others; all PEM.
 *
 * @param certificate of the node, and of those between it and the authority if there are any
 * @param key of the certificate, PKCS #8 without a password
 * @param authority whose signature is trusted; there may be several in the file
 */
public record NodeFiles(Path certificate, Path key, Path authority) {
    private static final String AUTHORITY = "ca";
    static final String CERTIFICATE_END = ".pem";
    static final String KEY_END = ".key";

    /** The files of a node as {@link CertificateAuthority} lays them out in its directory. */
    static NodeFiles in(Path directory, String node) {
        String name = node.replace(':', '_');
        return new NodeFiles(
                directory.resolve(name + CERTIFICATE_END),
                directory.resolve(name + KEY_END),
                directory.resolve(AUTHORITY + CERTIFICATE_END));
    }

    /** The authority itself, as if it were a node. */
    static NodeFiles ofAuthority(Path directory) {
        return in(directory, AUTHORITY);
    }

    /**
     * The files that belong to a certificate made by {@link CertificateAuthority}: its key and the
     * authority lie beside it.
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
