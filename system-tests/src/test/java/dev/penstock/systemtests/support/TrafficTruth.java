package dev.penstock.systemtests.support;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.penstock.runtime.cli.Trained;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Compares what a run's ranks sent to each other with the prediction made before it began. */
public final class TrafficTruth {
    private TrafficTruth() {}

    /**
     * Expects that every rank sent in every step what was predicted, to the byte.
     *
     * @return for each rank the bytes for each use; uses that sent nothing are left out
     */
    public static List<Map<String, Long>> expectPredicted(Trained trained) {
        List<Map<String, Long>> predicted = new ArrayList<>();
        for (JsonNode rank : trained.summary().get("ranks")) {
            predicted.add(byUse(rank.get("predictedSentBytes")));
        }
        List<List<JsonNode>> steps = trained.sentBytes();
        assertThat(steps).isNotEmpty();
        for (int step = 0; step < steps.size(); step++) {
            assertThat(steps.get(step).stream().map(TrafficTruth::byUse).toList())
                    .as("bytes sent in step %d, by rank", step + 1)
                    .isEqualTo(predicted);
        }
        return predicted;
    }

    private static Map<String, Long> byUse(JsonNode bytes) {
        Map<String, Long> uses = new TreeMap<>();
        bytes.properties().forEach(use -> uses.put(use.getKey(), use.getValue().asLong()));
        uses.values().removeIf(sent -> sent == 0);
        return uses;
    }
}
