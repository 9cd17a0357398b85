package dev.penstock.runtime.cluster;

import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.file.Files;
import java.nio.file.Path;

/** What a node says of the machine it runs on. */
final class ThisHost {
    private static final Path BOOT = Path.of("/proc/sys/kernel/random/boot_id");
    private static final Path SHARED_MEMORY = Path.of("/dev/shm");
    private static final Path MEMORY = Path.of("/proc/meminfo");

    private ThisHost() {}

    /** Its name for people. */
    static String name() {
        try {
            return InetAddress.getLocalHost().getHostName();
        } catch (UnknownHostException e) {
            return "localhost";
        }
    }

    /**
     * Equal for two processes if and only if they see the same shared memory: the kernel's boot and
     * the device of {@code /dev/shm}. Containers of one machine have one each, unless they share
     * it.
     */
    static String sharedMemory() {
        try {
            String boot = Files.readString(BOOT).strip();
            Object device = Files.getAttribute(SHARED_MEMORY, "unix:dev");
            return "%s:%s".formatted(boot, device);
        } catch (IOException | UnsupportedOperationException | IllegalArgumentException e) {
            return name(); // no Linux: one machine, one memory
        }
    }

    /** Memory that new processes may take without swapping. */
    static long freeBytes() {
        try {
            for (String line : Files.readAllLines(MEMORY)) {
                if (line.startsWith("MemAvailable:")) {
                    return Long.parseLong(line.replaceAll("[^0-9]", "")) * 1024;
                }
            }
        } catch (IOException | NumberFormatException e) {
            // said by Java below
        }
        return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
                .getFreeMemorySize();
    }
}
