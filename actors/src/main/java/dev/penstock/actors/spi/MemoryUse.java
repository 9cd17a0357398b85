package dev.penstock.actors.spi;

import dev.penstock.cuda.device.DeviceScope;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What a rank holds device memory for, and how much it ever held for that.
 *
 * @param use the name of the scopes, such as {@code parameters} or {@code boundary}
 */
public record MemoryUse(String use, long peakBytes) {
    private static final String MIRROR = "mirror";

    /**
     * The uses of a device's memory: a scope that has scopes below is told by these, stages are
     * added up, and so are mirrors, each as one.
     */
    public static List<MemoryUse> of(DeviceScope memory) {
        Map<String, Long> peaks = new LinkedHashMap<>();
        memory.children().forEach(child -> add(child, peaks));
        return peaks.entrySet().stream()
                .map(peak -> new MemoryUse(peak.getKey(), peak.getValue()))
                .toList();
    }

    private static void add(DeviceScope scope, Map<String, Long> peaks) {
        List<DeviceScope> children = scope.children();
        if (scope.name().startsWith(MIRROR)) {
            peaks.merge("mirrors", scope.peakBytes(), Long::sum);
        } else if (children.isEmpty()) {
            peaks.merge(scope.name(), scope.peakBytes(), Long::sum);
        } else {
            children.forEach(child -> add(child, peaks));
        }
    }
}
