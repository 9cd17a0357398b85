package dev.penstock.runtime.serve;

import dev.penstock.runtime.safetensors.Sha256;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Optional;

/**
 * Where a server listens, and for whom.
 *
 * @param port 0 for any that is free
 * @param keyHash SHA-256 of the key that requests must show, in hexadecimal; without one, everybody
 *     who reaches the address is served
 */
public record ServeAddress(InetAddress host, int port, Optional<String> keyHash) {
    /**
     * An address with a key.
     *
     * @param key that requests must show
     */
    public static ServeAddress of(InetAddress host, int port, Optional<String> key) {
        return new ServeAddress(host, port, key.map(Sha256::of));
    }

    /**
     * Returns whether browsers could be led here by a foreign page: nothing else keeps them out.
     */
    boolean isOpenOnLoopback() {
        return keyHash.isEmpty() && host.isLoopbackAddress();
    }

    /** Returns whether a key is the right one; takes the same time for every wrong one. */
    boolean isKey(String shown) {
        return keyHash.isPresent()
                && MessageDigest.isEqual(
                        keyHash.get().getBytes(StandardCharsets.UTF_8),
                        Sha256.of(shown).getBytes(StandardCharsets.UTF_8));
    }
}
