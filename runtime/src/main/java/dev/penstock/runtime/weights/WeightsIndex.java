package dev.penstock.runtime.weights;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import dev.penstock.runtime.safetensors.JsonMistake;
import dev.penstock.runtime.safetensors.StoredFileException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The table that says which file has which tensor: {@code {"metadata": .., "weight_map": {"NAME":
 * "FILE", ..}}}. What else it says is not needed.
 *
 * @param files file by tensor, in the order of the index; names of files without folders
 * @param problems what is wrong with entries that are left out
 */
record WeightsIndex(Map<String, String> files, List<String> problems) {
    /** Bounds what a hostile file can make us allocate; a model of 10,000 tensors needs 1 MB. */
    private static final long MAX_BYTES = 16 << 20;

    private static final String MAP = "weight_map";
    private static final JsonFactory JSON = new JsonFactory();

    /**
     * Reads an index.
     *
     * @throws StoredFileException if it cannot be read or has no such table
     */
    static WeightsIndex read(Path path) {
        try {
            long size = Files.size(path);
            if (size > MAX_BYTES) {
                throw new StoredFileException(
                        path,
                        "expected an index of at most %,d bytes, got %,d"
                                .formatted(MAX_BYTES, size));
            }
            return parse(path, Files.readString(path, StandardCharsets.UTF_8));
        } catch (JsonProcessingException e) {
            throw new StoredFileException(path, "not JSON: " + JsonMistake.words(e), e);
        } catch (IOException e) {
            throw StoredFileException.of(path, "read the index", e);
        }
    }

    private static WeightsIndex parse(Path path, String text) throws IOException {
        Map<String, String> files = new LinkedHashMap<>();
        List<String> problems = new ArrayList<>();
        boolean found = false;
        try (JsonParser json = JSON.createParser(text)) {
            if (json.nextToken() == JsonToken.START_OBJECT) {
                while (json.nextToken() == JsonToken.FIELD_NAME) {
                    boolean map = json.currentName().equals(MAP);
                    JsonToken value = json.nextToken();
                    if (map && value == JsonToken.START_OBJECT) {
                        found = true;
                        readMap(json, files, problems);
                    } else {
                        json.skipChildren();
                    }
                }
            }
            if (!found) {
                throw new StoredFileException(
                        path, "expected a JSON object with a '%s', got none".formatted(MAP));
            }
            if (json.nextToken() != null) {
                problems.add("text follows the JSON object");
            }
        }
        return new WeightsIndex(files, problems);
    }

    private static void readMap(JsonParser json, Map<String, String> files, List<String> problems)
            throws IOException {
        while (json.nextToken() == JsonToken.FIELD_NAME) {
            String tensor = json.currentName();
            JsonToken value = json.nextToken();
            String file = value == JsonToken.VALUE_STRING ? json.getText() : "";
            json.skipChildren();
            if (!isPlainName(file)) {
                problems.add(
                        "%s: expected the name of a file beside the index, got '%s'"
                                .formatted(tensor, file));
                continue;
            }
            String before = files.putIfAbsent(tensor, file);
            if (before != null) {
                problems.add("%s: named twice, in %s and in %s".formatted(tensor, before, file));
            }
        }
    }

    private static boolean isPlainName(String file) {
        return !file.isEmpty()
                && !file.contains("/")
                && !file.contains("\\")
                && isAPath(file)
                && !file.equals(".")
                && !file.equals("..");
    }

    /** Some texts are no names of files, and which are depends on the machine. */
    private static boolean isAPath(String file) {
        try {
            return Path.of(file).getNameCount() == 1;
        } catch (InvalidPathException e) {
            return false;
        }
    }
}
