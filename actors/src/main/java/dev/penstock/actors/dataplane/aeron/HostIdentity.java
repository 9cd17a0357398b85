package dev.penstock.actors.dataplane.aeron;

import java.io.IOException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Tells hosts apart. */
final class HostIdentity {
    private static final Path BOOT = Path.of("/proc/sys/kernel/random/boot_id");

    private HostIdentity() {}

    /** The kernel's number for this boot and the host's name, which differs between containers. */
    static String ofThisHost() {
        return name() + "/" + boot();
    }

    private static String name() {
        try {
            return InetAddress.getLocalHost().getHostName();
        } catch (UnknownHostException e) {
            return "nameless";
        }
    }

    private static String boot() {
        try {
            return Files.readString(BOOT).strip();
        } catch (IOException e) {
            return "unknown boot";
        }
    }
}
