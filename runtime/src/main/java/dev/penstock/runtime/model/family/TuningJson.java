package dev.penstock.runtime.model.family;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.penstock.runtime.model.shape.AdapterPlace;
import dev.penstock.runtime.model.shape.Adapters;
import dev.penstock.runtime.model.shape.FineTuning;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** What manifests of checkpoints say of what is trained. */
final class TuningJson {
    private TuningJson() {}

    static ObjectNode write(FineTuning tuning) {
        ObjectNode node = JsonNodeFactory.instance.objectNode();
        var freeze = node.putArray("freeze");
        tuning.freeze().forEach(freeze::add);
        tuning.adapters()
                .ifPresent(
                        adapters -> {
                            ObjectNode lora = node.putObject("lora");
                            lora.put("rank", adapters.rank()).put("alpha", adapters.alpha());
                            if (adapters.dropout() > 0) {
                                lora.put("dropout", adapters.dropout());
                            }
                            var places = lora.putArray("places");
                            for (AdapterPlace place : adapters.places()) {
                                places.addObject()
                                        .put("linear", place.linear())
                                        .put("part", place.part())
                                        .put("first_column", place.firstColumn())
                                        .put("columns", place.columns());
                            }
                        });
        return node;
    }

    static FineTuning read(JsonNode node) {
        List<String> freeze = new ArrayList<>();
        node.path("freeze").forEach(pattern -> freeze.add(pattern.asText()));
        return new FineTuning(
                node.has("lora") ? Optional.of(adapters(node.path("lora"))) : Optional.empty(),
                freeze);
    }

    private static Adapters adapters(JsonNode lora) {
        List<AdapterPlace> places = new ArrayList<>();
        for (JsonNode place : lora.path("places")) {
            places.add(
                    new AdapterPlace(
                            place.path("linear").asText(),
                            place.path("part").asText(),
                            place.path("first_column").asInt(),
                            place.path("columns").asInt()));
        }
        return new Adapters(
                lora.path("rank").asInt(),
                lora.path("alpha").asDouble(),
                lora.path("dropout").asDouble(),
                places);
    }
}
