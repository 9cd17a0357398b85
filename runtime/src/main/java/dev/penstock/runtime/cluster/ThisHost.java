package dev.penstock.runtime.cluster;

import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;

/** What a node says of the machine it runs on. */
final class ThisHost {
    private static final Path MEMORY = Path.of("/proc/meminfo");

    private ThisHost() {}

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
