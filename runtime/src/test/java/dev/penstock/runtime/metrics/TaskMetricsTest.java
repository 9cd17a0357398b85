package dev.penstock.runtime.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;

class TaskMetricsTest {
    @Test
    void aLineIsReadAsItWasWritten() {
        Map<String, Number> measures = new LinkedHashMap<>();
        measures.put("texts", 5153L);
        measures.put("perplexity", 40.0);
        measures.put("accuracy", 1.0 / 3);
        var line =
                new TaskMetrics(
                        7,
                        Instant.parse("2026-01-02T03:04:05Z"),
                        "lambada",
                        "lm-eval",
                        1024,
                        "lambada.jsonl",
                        measures);

        String written = MetricsJson.write(line);

        assertThat(written).startsWith("{\"type\":\"task\",\"step\":7,");
        assertThat(MetricsJson.read(written)).contains(line);
    }

    @Test
    void whatIsNoNumberIsNull() {
        var line =
                new TaskMetrics(
                        1,
                        Instant.EPOCH,
                        "text",
                        "plain",
                        32,
                        "a.txt",
                        Map.of("perplexity", Double.POSITIVE_INFINITY));

        assertThat(MetricsJson.write(line)).contains("\"perplexity\":null");
    }
}
