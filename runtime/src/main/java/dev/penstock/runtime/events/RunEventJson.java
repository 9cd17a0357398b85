package dev.penstock.runtime.events;

import com.fasterxml.jackson.annotation.JsonSetter;
import com.fasterxml.jackson.annotation.Nulls;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationContext;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonDeserializer;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.annotation.JsonDeserialize;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.penstock.actors.collective.TensorMesh;
import dev.penstock.actors.spi.RankGrid;
import java.io.IOException;
import java.util.List;
import java.util.Optional;

/** Both directions of the line format. */
final class RunEventJson {
    private static final ObjectMapper JSON =
            JsonMapper.builder()
                    .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
                    .disable(DeserializationFeature.FAIL_ON_INVALID_SUBTYPE)
                    .enable(DeserializationFeature.FAIL_ON_NULL_CREATOR_PROPERTIES)
                    .addMixIn(RankGrid.class, AnyGrid.class)
                    .build();

    /**
     * Runs that were recorded before there were different shards, or meshes, say nothing of them.
     */
    private abstract static class AnyGrid {
        @JsonSetter(nulls = Nulls.AS_EMPTY)
        abstract List<Integer> shards();

        @JsonSetter(nulls = Nulls.AS_EMPTY)
        @JsonDeserialize(using = MeshReader.class)
        abstract TensorMesh mesh();
    }

    /** Reads a mesh; an absent one is a line. */
    private static final class MeshReader extends JsonDeserializer<TensorMesh> {
        @Override
        public TensorMesh deserialize(JsonParser parser, DeserializationContext context)
                throws IOException {
            JsonNode mesh = parser.readValueAsTree();
            return new TensorMesh(
                    TensorMesh.Kind.valueOf(mesh.path("kind").asText()),
                    mesh.path("rows").asInt(),
                    mesh.path("columns").asInt(),
                    mesh.path("depth").asInt());
        }

        @Override
        public TensorMesh getEmptyValue(DeserializationContext context) {
            return TensorMesh.NONE;
        }

        @Override
        public TensorMesh getAbsentValue(DeserializationContext context) {
            return TensorMesh.NONE;
        }
    }

    private RunEventJson() {}

    /** The line without its end. */
    static byte[] write(RunEvent event) {
        try {
            return JSON.writerFor(RunEvent.class).writeValueAsBytes(event);
        } catch (JsonProcessingException e) {
            throw new IllegalStateException("expected events to be writable: " + event, e);
        }
    }

    /**
     * Reads a line; empty if it is cut off, lacks something, or is of a type that this version does
     * not know.
     */
    static Optional<RunEvent> read(byte[] bytes, int offset, int length) {
        try {
            return Optional.ofNullable(JSON.readValue(bytes, offset, length, RunEvent.class));
        } catch (IOException | IllegalArgumentException e) {
            return Optional.empty();
        }
    }
}
