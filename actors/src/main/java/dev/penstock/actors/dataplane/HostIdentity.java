package dev.penstock.actors.dataplane;

import java.io.IOException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Tells hosts apart by the memory that their processes can share. */
public final class HostIdentity {
    private static final Path BOOT = Path.of("/proc/sys/kernel/random/boot_id");
    private static final Path SHARED_MEMORY = Path.of("/dev/shm");

    private HostIdentity() {}

    /**
     * Equal for two processes if and only if they see the same shared memory: the kernel's boot and
     * the device of {@code /dev/shm}. Containers of one machine have one each, unless they share
     * it.
     */
    public static String ofThisHost() {
        try {
            String boot = Files.readString(BOOT).strip();
            Object device = Files.getAttribute(SHARED_MEMORY, "unix:dev");
            return "%s:%s".formatted(boot, device);
        } catch (IOException | UnsupportedOperationException | IllegalArgumentException e) {
            return name(); // no Linux: one machine, one memory
        }
    }

    /** Its name for people. */
    public static String name() {
        try {
            return InetAddress.getLocalHost().getHostName();
        } catch (UnknownHostException e) {
            return "localhost";
        }
    }
}
