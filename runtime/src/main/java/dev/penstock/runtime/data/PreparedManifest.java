package dev.penstock.runtime.data;

import com.fasterxml.jackson.core.JsonParseException;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.penstock.runtime.checkpoint.DurableFiles;
import dev.penstock.runtime.safetensors.JsonMistake;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/**
 * {@code prepared.json}, which a folder of prepared tokens has when it is whole.
 *
 * @param version of the format
 * @param shards in their order
 */
record PreparedManifest(
        int version,
        long tokens,
        long documents,
        int tokenBytes,
        String planHash,
        PreparationPlan plan,
        List<Shard> shards) {
    static final String FILE = "prepared.json";

    /** Its shards have sums of their blocks. */
    static final int VERSION = 2;

    /** Its shards have none, or those alone that a later preparation added to it. */
    private static final int FIRST_VERSION = 1;

    /** Enough for half a million shards. */
    private static final long MOST_BYTES = 64 << 20;

    private static final ObjectMapper JSON =
            JsonMapper.builder().enable(SerializationFeature.INDENT_OUTPUT).build();

    /**
     * A file.
     *
     * @param checksum CRC-32C of the tokens' bytes, 8 hexadecimal digits
     */
    record Shard(String file, long tokens, String checksum) {
        static String checksum(int crc) {
            return "%08x".formatted(crc);
        }
    }

    /** Returns the name of a shard's file. */
    static String shardFile(int index) {
        return "tokens-%05d.bin".formatted(index);
    }

    static boolean isIn(Path folder) {
        return Files.isRegularFile(folder.resolve(FILE));
    }

    void write(Path folder) throws IOException {
        DurableFiles.write(folder.resolve(FILE), JSON.writeValueAsString(this) + "\n");
    }

    /**
     * Reads it.
     *
     * @throws DataException if it cannot be read, or is of another version
     */
    static PreparedManifest read(Path folder) {
        Path file = folder.resolve(FILE);
        try {
            return parse(file);
        } catch (JsonProcessingException e) {
            throw damaged(file, JsonMistake.words(e));
        } catch (NoSuchFileException e) {
            throw new DataException(
                    List.of(
                            new DataProblem(
                                    "data.source",
                                    "a folder with %s, which penstock data prepare writes at its end"
                                            .formatted(FILE),
                                    folder + " without it",
                                    "run the same penstock data prepare again to finish it")));
        } catch (IOException e) {
            throw damaged(file, String.valueOf(e.getMessage()));
        }
    }

    /**
     * Reads it; empty if it is damaged.
     *
     * @throws DataException if it is of another version
     * @throws IOException if the disk does not give it
     */
    static Optional<PreparedManifest> readIfWhole(Path folder) throws IOException {
        try {
            return Optional.of(parse(folder.resolve(FILE)));
        } catch (JsonProcessingException e) {
            return Optional.empty();
        }
    }

    private static PreparedManifest parse(Path file) throws IOException {
        if (Files.size(file) > MOST_BYTES) {
            throw new JsonParseException(null, "%,d bytes".formatted(Files.size(file)));
        }
        JsonNode root = JSON.readTree(file.toFile());
        JsonNode version = root.path("version");
        if (version.isInt() && !isKnown(version.intValue())) {
            throw new DataException(
                    List.of(
                            new DataProblem(
                                    "data.source",
                                    "%s of version %d to %d"
                                            .formatted(file, FIRST_VERSION, VERSION),
                                    "version " + version,
                                    "use the Penstock that wrote it")));
        }
        PreparedManifest read = JSON.treeToValue(root, PreparedManifest.class);
        if (read == null) {
            throw new JsonParseException(null, "nothing");
        }
        Optional<String> problem = read.problem();
        if (problem.isPresent()) {
            throw new JsonParseException(null, problem.get());
        }
        return read;
    }

    private static boolean isKnown(int version) {
        return version >= FIRST_VERSION && version <= VERSION;
    }

    /** What reading JSON leaves open. */
    private Optional<String> problem() {
        if (!isKnown(version)
                || planHash == null
                || plan == null
                || plan.tokenizer() == null
                || plan.tokenizer().name() == null
                || plan.tokenizer().fingerprint() == null
                || shards == null
                || shards.isEmpty()) {
            return Optional.of("a part of it");
        }
        if (plan.tokenizer().vocabulary() < 1
                || plan.shardTokens() < 1
                || documents < 0
                || tokenBytes != (plan.tokenizer().vocabulary() <= 1 << 16 ? 2 : 4)) {
            return Optional.of(
                    "a vocabulary of %d, tokens of %d bytes, %d of them in a file"
                            .formatted(
                                    plan.tokenizer().vocabulary(), tokenBytes, plan.shardTokens()));
        }
        long sum = 0;
        for (int i = 0; i < shards.size(); i++) {
            Shard shard = shards.get(i);
            if (shard == null
                    || shard.checksum() == null
                    || !shardFile(i).equals(shard.file())
                    || shard.tokens() < 1
                    || shard.tokens() > plan.shardTokens()
                    || shard.tokens() > Long.MAX_VALUE - sum) {
                return Optional.of("%s as its shard %d".formatted(shard, i));
            }
            sum += shard.tokens();
        }
        return sum == tokens
                ? Optional.empty()
                : Optional.of("%d tokens in shards of %d".formatted(tokens, sum));
    }

    private static DataException damaged(Path file, String got) {
        return new DataException(
                List.of(
                        new DataProblem(
                                "data.source",
                                file + ", as penstock data prepare writes it",
                                got,
                                "it is damaged: delete it and run the same penstock data prepare"
                                        + " again, which keeps the shards that are whole")));
    }
}
