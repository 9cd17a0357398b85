package dev.penstock.runtime.data;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.penstock.runtime.checkpoint.DurableFiles;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

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

    static final int VERSION = 1;

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
            PreparedManifest read = JSON.readValue(file.toFile(), PreparedManifest.class);
            if (read == null || !read.isWhole()) {
                throw damaged(file, "a part of it");
            }
            if (read.version != VERSION) {
                throw damaged(file, "version " + read.version);
            }
            return read;
        } catch (JsonProcessingException e) {
            throw damaged(file, e.getOriginalMessage());
        } catch (IOException e) {
            throw damaged(file, String.valueOf(e.getMessage()));
        }
    }

    /** What reading JSON leaves open. */
    private boolean isWhole() {
        return plan != null
                && plan.tokenizer() != null
                && planHash != null
                && shards != null
                && !shards.isEmpty()
                && shards.stream().allMatch(shard -> shard != null && shard.checksum() != null)
                && (tokenBytes == 2 || tokenBytes == 4)
                && plan.shardTokens() > 0
                && shards.getFirst().tokens() <= plan.shardTokens();
    }

    private static DataException damaged(Path file, String got) {
        return new DataException(
                List.of(
                        new DataProblem(
                                "data.source",
                                "%s, version %d, as penstock data prepare writes it"
                                        .formatted(file, VERSION),
                                got,
                                "prepare the tokens again")));
    }
}
