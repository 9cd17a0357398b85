package dev.penstock.runtime.tokenizer;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;

/** Reads the JSON files of a tokenizer. */
final class JsonFiles {
    static final ObjectMapper MAPPER = new ObjectMapper();

    /** The largest tokenizers of today have 40 MB. */
    private static final long MOST_BYTES = 256 << 20;

    private JsonFiles() {}

    /** Reads an object's members one by one. */
    interface Members {
        /**
         * Takes one member.
         *
         * @param json stands on the first token of its value; is left on the last
         */
        void take(String name, JsonParser json) throws IOException;
    }

    /**
     * Reads a file that holds one object.
     *
     * @throws TokenizerFileException if it cannot be read or is not whole
     */
    static void read(Path file, Members members) {
        requireSize(file);
        try (JsonParser json = MAPPER.createParser(file.toFile())) {
            if (json.nextToken() != JsonToken.START_OBJECT) {
                throw damaged(file, "something else");
            }
            readObject(json, members);
            if (json.nextToken() != null) {
                throw damaged(file, "more after its end");
            }
        } catch (JsonProcessingException e) {
            throw damaged(
                    file,
                    "%s (line %d)"
                            .formatted(
                                    e.getOriginalMessage(),
                                    e.getLocation() == null ? 0 : e.getLocation().getLineNr()));
        } catch (IOException e) {
            throw unreadable(file, e);
        }
    }

    /** Reads the members of the object on whose first token the parser stands. */
    static void readObject(JsonParser json, Members members) throws IOException {
        while (json.nextToken() != JsonToken.END_OBJECT) {
            String name = json.currentName();
            json.nextToken();
            members.take(name, json);
        }
    }

    /** Returns what adds members of an object, tokens with their numbers, to a table. */
    static Members numbered(Path file, TokenTable table) {
        return (token, json) -> {
            if (!json.currentToken().isNumeric()) {
                throw damaged(file, "'%s' without a number".formatted(token));
            }
            table.add(token, json.getLongValue());
        };
    }

    /** Reads a small file; one that does not exist is an empty object. */
    static JsonNode readIfThere(Path file) {
        if (!Files.exists(file)) {
            return MAPPER.createObjectNode();
        }
        requireSize(file);
        try {
            return MAPPER.readTree(file.toFile());
        } catch (JsonProcessingException e) {
            throw damaged(file, e.getOriginalMessage());
        } catch (IOException e) {
            throw unreadable(file, e);
        }
    }

    static TokenizerFileException damaged(Path file, String got) {
        return new TokenizerFileException(
                file, "one whole JSON object", got, "the file is torn or of another kind");
    }

    static TokenizerFileException unreadable(Path file, IOException e) {
        String why = e instanceof NoSuchFileException ? "none" : String.valueOf(e.getMessage());
        return new TokenizerFileException(file, "a file that can be read", why, "");
    }

    /** Refuses a file that is too large to be read into memory. */
    static void requireSize(Path file) {
        try {
            long bytes = Files.size(file);
            if (bytes > MOST_BYTES) {
                throw new TokenizerFileException(
                        file,
                        "a tokenizer's file of at most %d MiB".formatted(MOST_BYTES >> 20),
                        "%d bytes".formatted(bytes),
                        "");
            }
        } catch (IOException e) {
            throw unreadable(file, e);
        }
    }
}
