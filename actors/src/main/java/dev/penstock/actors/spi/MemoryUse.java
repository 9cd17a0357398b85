package dev.penstock.actors.spi;

import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceScope;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What a rank holds memory of its device or of the host for, and how much it ever held for that.
 *
 * @param use the name of the scopes
 */
public record MemoryUse(String use, long peakBytes) {
    /** What a stage's parameters take, own parts of sharded ones too. */
    public static final String PARAMETERS = "parameters";

    /** Gradients that the optimizer reads. */
    public static final String GRADIENTS = "gradients";

    /** Moments. */
    public static final String OPTIMIZER = "optimizer";

    /** What units in flight keep. */
    public static final String ACTIVATIONS = "activations";

    /** Queries, keys and values. */
    public static final String KEY_VALUES = "key/value slices";

    /** What every op uses again. */
    public static final String SCRATCH = "scratch";

    /** Whole parameters of shards, while they are here. */
    public static final String GATHERED = "gathers";

    /** Gradients on their way to being shards. */
    public static final String ACCUMULATORS = "accumulators";

    /** Tensors between stages. */
    public static final String BUFFERS = "buffers";

    /** Blocks of sums and gathers between processes. */
    public static final String COLLECTIVES = "collectives";

    /** Other ranks' state, and blocks on their way to it. */
    public static final String MIRRORS = "mirrors";

    /** What kernels hold for themselves. */
    public static final String KERNELS = Device.KERNELS;

    /** Activations that left the device, in the host's memory or in files. */
    public static final String HOST_ACTIVATIONS = "activations on the host";

    /** Files of optimizer state and of parameters that are divided or swapped. */
    public static final String ON_DISK = "state on disk";

    /** All of them, as they are shown. */
    public static final List<String> ALL =
            List.of(
                    PARAMETERS,
                    GRADIENTS,
                    OPTIMIZER,
                    ACTIVATIONS,
                    KEY_VALUES,
                    SCRATCH,
                    GATHERED,
                    ACCUMULATORS,
                    BUFFERS,
                    COLLECTIVES,
                    MIRRORS,
                    KERNELS,
                    HOST_ACTIVATIONS,
                    ON_DISK);

    private static final String MIRROR = "mirror";

    /** Whether it counts against no device. */
    public boolean isOnHost() {
        return use.equals(HOST_ACTIVATIONS) || use.equals(ON_DISK);
    }

    /**
     * The uses of a device's memory: a scope that has scopes below is told by these, stages are
     * added up, and so are mirrors, each as one; so is what kernels hold.
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
            peaks.merge(MIRRORS, scope.peakBytes(), Long::sum);
        } else if (children.isEmpty() || scope.name().equals(KERNELS)) {
            peaks.merge(scope.name(), scope.peakBytes(), Long::sum);
        } else {
            children.forEach(child -> add(child, peaks));
        }
    }
}
