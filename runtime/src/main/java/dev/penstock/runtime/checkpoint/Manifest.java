package dev.penstock.runtime.checkpoint;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.penstock.actors.spi.CheckpointStore.ShardFile;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.safetensors.JsonMistake;
import dev.penstock.runtime.safetensors.Sha256;
import dev.penstock.runtime.safetensors.StoredFileException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * The table of contents of a checkpoint; its presence makes the checkpoint whole. Contains a hash
 * of itself, so that no field of a damaged manifest is trusted.
 *
 * @param formatVersion of this layout
 * @param step number of training steps that the state has seen
 * @param seed of the run
 * @param configHash of the run's resolved configuration
 * @param model shape
 * @param configSha256 hash of {@code config.json}
 * @param shards files of the set, one or several per stage
 * @param lossScale state of the loss scaler, see {@link dev.penstock.actors.precision.LossScaler};
 *     empty if the loss was not scaled
 */
public record Manifest(
        int formatVersion,
        long step,
        long seed,
        String configHash,
        ModelConfig model,
        String configSha256,
        List<ShardFile> shards,
        String lossScale) {
    static final String FILE = "manifest.json";
    static final int FORMAT_VERSION = 1;

    /** Enough for some three hundred thousand files. */
    private static final long MAX_BYTES = 64 << 20;

    private static final Pattern SHARD =
            Pattern.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,199}\\.safetensors");

    private static final String HASH = "sha256";
    private static final String CONTENT = "checkpoint";
    private static final String LOSS_SCALE = "lossScale";
    private static final ObjectMapper JSON =
            JsonMapper.builder()
                    .enable(DeserializationFeature.FAIL_ON_NULL_CREATOR_PROPERTIES)
                    .enable(DeserializationFeature.FAIL_ON_MISSING_CREATOR_PROPERTIES)
                    .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
                    .build();

    public Manifest {
        shards = List.copyOf(shards);
    }

    /** Returns the text of the file. */
    String toJson() {
        ObjectNode content = JSON.valueToTree(this);
        ObjectNode root = JSON.createObjectNode();
        root.put(HASH, hash(content));
        root.set(CONTENT, content);
        return root.toPrettyString() + "\n";
    }

    /**
     * Reads the manifest of a checkpoint.
     *
     * @throws StoredFileException if it is missing, damaged or of another version
     */
    static Manifest read(Path checkpoint) {
        Path file = checkpoint.resolve(FILE);
        try {
            if (Files.size(file) > MAX_BYTES) {
                throw new StoredFileException(file, "too large to be a manifest");
            }
            JsonNode root = JSON.readTree(Files.readString(file, StandardCharsets.UTF_8));
            JsonNode content = root.path(CONTENT);
            if (!root.path(HASH).asText().equals(hash(content))) {
                throw new StoredFileException(file, "damaged: its hash does not match its content");
            }
            int version = content.path("formatVersion").asInt();
            if (version != FORMAT_VERSION) {
                throw new StoredFileException(
                        file,
                        "expected format version %d, got %d; use the Penstock that wrote it"
                                .formatted(FORMAT_VERSION, version));
            }
            if (content instanceof ObjectNode known && !known.has(LOSS_SCALE)) {
                known.put(LOSS_SCALE, ""); // written when no loss was scaled
            }
            Manifest manifest = JSON.treeToValue(content, Manifest.class);
            requireOwnFiles(file, manifest.shards());
            return manifest;
        } catch (JsonProcessingException e) {
            throw new StoredFileException(file, "damaged: " + JsonMistake.words(e), e);
        } catch (IOException e) {
            throw StoredFileException.of(file, "read the manifest", e);
        }
    }

    /** A manifest from elsewhere may name any file of this machine. */
    private static void requireOwnFiles(Path file, List<ShardFile> shards) {
        Set<String> names = new HashSet<>();
        for (ShardFile shard : shards) {
            if (!SHARD.matcher(shard.file()).matches()
                    || !names.add(shard.file())
                    || shard.bytes() < 0
                    || shard.stage() < 0) {
                throw new StoredFileException(
                        file,
                        "expected files of this folder such as stage-0.safetensors, each once, got %s of %d bytes"
                                .formatted(JSON.valueToTree(shard.file()), shard.bytes()));
            }
        }
    }

    private static String hash(JsonNode content) {
        return Sha256.of(content.toString());
    }
}
