package dev.penstock.runtime.starter;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;

/**
 * What a training has to get along with.
 *
 * @param cores that this process may use
 * @param memoryBytes of the machine, or of the container
 */
public record Machine(int cores, long memoryBytes) {
    /** The machine that this process runs on. */
    public static Machine here() {
        var system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        return new Machine(Runtime.getRuntime().availableProcessors(), system.getTotalMemorySize());
    }
}
