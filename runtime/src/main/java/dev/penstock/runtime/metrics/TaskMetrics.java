package dev.penstock.runtime.metrics;

import java.time.Instant;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A line of type {@code task}: figures of a checkpoint by a published protocol.
 *
 * @param context tokens that the model saw at most; 0 in lines of versions that did not say it
 * @param data what was read
 * @param measures by name, in the order in which they are told; counts as {@code Long}
 */
public record TaskMetrics(
        long step,
        Instant time,
        String task,
        String protocol,
        int context,
        String data,
        Map<String, Number> measures)
        implements MetricsLine {
    public TaskMetrics {
        measures = Collections.unmodifiableMap(new LinkedHashMap<>(measures));
    }
}
