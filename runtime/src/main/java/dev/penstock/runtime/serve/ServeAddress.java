package dev.penstock.runtime.serve;

import java.net.InetAddress;
import java.util.Optional;

/**
 * Where a server listens, and for whom.
 *
 * @param port 0 for any that is free
 * @param key that requests must show; without one, everybody who reaches the address is served
 */
public record ServeAddress(InetAddress host, int port, Optional<String> key) {
    /**
     * Returns whether browsers could be led here by a foreign page: nothing else keeps them out.
     */
    boolean isOpenOnLoopback() {
        return key.isEmpty() && host.isLoopbackAddress();
    }
}
