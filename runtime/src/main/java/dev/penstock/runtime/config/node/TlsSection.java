package dev.penstock.runtime.config.node;

import dev.penstock.runtime.config.reading.Setting;
import java.nio.file.Path;
import java.util.Optional;

/**
 * Section {@code cluster.tls} of a node's file: all of it, or none.
 *
 * @param certificate of this node, PEM
 * @param key of the certificate, PEM
 * @param authority that signed the certificates of all nodes, PEM
 */
public record TlsSection(
        @Setting(is = "none", word = "none", doc = "this node's certificate, a PEM file")
                Optional<Path> certificate,
        @Setting(is = "none", word = "none", doc = "the certificate's key, a PEM file")
                Optional<Path> key,
        @Setting(is = "none", word = "none", doc = "who signed all nodes' certificates, a PEM file")
                Optional<Path> authority) {

    /** Whether nodes prove to each other who they are. */
    public boolean isOn() {
        return certificate.isPresent() && key.isPresent() && authority.isPresent();
    }

    /** Whether some is given, but not all. */
    boolean isHalf() {
        return !isOn() && (certificate.isPresent() || key.isPresent() || authority.isPresent());
    }
}
