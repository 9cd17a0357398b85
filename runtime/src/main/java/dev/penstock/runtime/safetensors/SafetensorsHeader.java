package dev.penstock.runtime.safetensors;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The JSON part of a safetensors file.
 *
 * @param metadata free text under {@code __metadata__}
 * @param entries in the order of the file
 */
record SafetensorsHeader(Map<String, String> metadata, List<Entry> entries) {
    /**
     * Enough for some forty thousand tensors; bounds the memory that a hostile file can make us
     * allocate.
     */
    static final int MAX_BYTES = 4 << 20;

    private static final int MAX_DIMENSIONS = 8;
    private static final String METADATA = "__metadata__";
    private static final JsonMapper JSON =
            JsonMapper.builder()
                    .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
                    .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
                    .build();

    /**
     * The place of a tensor in the file.
     *
     * @param begin first byte, counted from the end of the header
     * @param end one past the last byte
     */
    record Entry(String name, StoredType type, List<Integer> shape, long begin, long end) {}

    /** Thrown if the header does not conform to the format. */
    static final class MalformedException extends Exception {
        private static final long serialVersionUID = 1L;

        MalformedException(String problem) {
            super(problem);
        }
    }

    /**
     * Reads a header; nothing in it is trusted before it is checked.
     *
     * @param dataBytes bytes that follow the header in the file; the tensors must fill them exactly
     */
    static SafetensorsHeader parse(byte[] json, long dataBytes) throws MalformedException {
        if (!(tree(json) instanceof ObjectNode root)) {
            throw new MalformedException("the header is not a JSON object");
        }
        Map<String, String> metadata = new LinkedHashMap<>();
        List<Entry> entries = new ArrayList<>();
        for (Map.Entry<String, JsonNode> field : root.properties()) {
            if (field.getKey().equals(METADATA)) {
                metadata.putAll(metadata(field.getValue()));
            } else {
                entries.add(entry(field.getKey(), field.getValue()));
            }
        }
        checkCoverage(entries, dataBytes);
        return new SafetensorsHeader(metadata, entries);
    }

    private static JsonNode tree(byte[] json) throws MalformedException {
        try {
            // decoded here, since the parser would guess UTF-16 or UTF-32 from damaged bytes
            String text =
                    StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(json)).toString();
            return JSON.readTree(text);
        } catch (CharacterCodingException e) {
            throw new MalformedException("the header is not UTF-8");
        } catch (JsonProcessingException e) {
            throw new MalformedException("the header is not JSON: " + e.getOriginalMessage());
        }
    }

    private static Map<String, String> metadata(JsonNode node) throws MalformedException {
        Map<String, String> metadata = new LinkedHashMap<>();
        for (Map.Entry<String, JsonNode> field : node.properties()) {
            if (!field.getValue().isTextual()) {
                throw new MalformedException(METADATA + "." + field.getKey() + " is not text");
            }
            metadata.put(field.getKey(), field.getValue().textValue());
        }
        return metadata;
    }

    private static Entry entry(String name, JsonNode node) throws MalformedException {
        String type = node.path("dtype").asText("");
        if (Arrays.stream(StoredType.values()).noneMatch(known -> known.name().equals(type))) {
            throw new MalformedException(
                    "%s: dtype is '%s', expected one of %s"
                            .formatted(name, type, Arrays.toString(StoredType.values())));
        }
        List<Long> shape = longs(name, "shape", node.path("shape"), MAX_DIMENSIONS);
        List<Long> offsets = longs(name, "data_offsets", node.path("data_offsets"), 2);
        if (offsets.size() != 2 || offsets.get(0) > offsets.get(1)) {
            throw new MalformedException(
                    "%s: data_offsets are %s, expected begin and end".formatted(name, offsets));
        }
        StoredType stored = StoredType.valueOf(type);
        checkSize(name, stored, shape, offsets.get(1) - offsets.get(0));
        List<Integer> dimensions = shape.stream().map(Math::toIntExact).toList();
        return new Entry(name, stored, dimensions, offsets.get(0), offsets.get(1));
    }

    private static List<Long> longs(String name, String field, JsonNode node, int limit)
            throws MalformedException {
        if (!node.isArray() || node.size() > limit) {
            throw new MalformedException(
                    "%s: %s is not a list of at most %d numbers".formatted(name, field, limit));
        }
        List<Long> values = new ArrayList<>();
        for (JsonNode item : node) {
            if (!item.isIntegralNumber() || !item.canConvertToLong() || item.longValue() < 0) {
                throw new MalformedException(
                        "%s: %s holds %s, expected a whole number from 0"
                                .formatted(name, field, item));
            }
            values.add(item.longValue());
        }
        return values;
    }

    private static void checkSize(String name, StoredType type, List<Long> shape, long bytes)
            throws MalformedException {
        long wanted = type.bytes();
        for (long dimension : shape) {
            if (dimension > Integer.MAX_VALUE
                    || Math.multiplyHigh(wanted, dimension) != 0
                    || wanted * dimension < 0) {
                throw new MalformedException(
                        "%s: shape %s is larger than a file can hold".formatted(name, shape));
            }
            wanted *= dimension;
        }
        if (wanted != bytes) {
            throw new MalformedException(
                    "%s: %s %s takes %d bytes, but data_offsets give %d"
                            .formatted(name, type, shape, wanted, bytes));
        }
    }

    private static void checkCoverage(List<Entry> entries, long dataBytes)
            throws MalformedException {
        List<Entry> sorted =
                entries.stream()
                        .sorted(Comparator.comparingLong(Entry::begin).thenComparing(Entry::end))
                        .toList();
        long next = 0;
        for (Entry entry : sorted) {
            if (entry.begin() != next) {
                throw new MalformedException(
                        "%s begins at data byte %d, expected %d: tensors overlap or leave a gap"
                                .formatted(entry.name(), entry.begin(), next));
            }
            next = entry.end();
        }
        if (next != dataBytes) {
            throw new MalformedException(
                    "the tensors take %d data bytes, but the file has %d (%s)"
                            .formatted(
                                    next, dataBytes, next > dataBytes ? "cut short" : "too long"));
        }
    }

    /** Returns the header of these tensors laid one after another. */
    static SafetensorsHeader of(
            Map<String, String> metadata, List<? extends TensorSource> tensors) {
        List<Entry> entries = new ArrayList<>();
        long begin = 0;
        for (TensorSource tensor : tensors) {
            long end = begin + tensor.bytes();
            entries.add(new Entry(tensor.name(), tensor.type(), tensor.shape(), begin, end));
            begin = end;
        }
        return new SafetensorsHeader(metadata, entries);
    }

    /** Returns the header as JSON, padded with blanks to a multiple of 8 bytes. */
    byte[] encode() {
        ObjectNode root = JSON.createObjectNode();
        if (!metadata.isEmpty()) {
            ObjectNode node = root.putObject(METADATA);
            metadata.forEach(node::put);
        }
        for (Entry entry : entries) {
            ObjectNode node = root.putObject(entry.name());
            node.put("dtype", entry.type().name());
            ArrayNode shape = node.putArray("shape");
            entry.shape().forEach(shape::add);
            node.putArray("data_offsets").add(entry.begin()).add(entry.end());
        }
        byte[] json = root.toString().getBytes(StandardCharsets.UTF_8);
        byte[] padded = Arrays.copyOf(json, (json.length + 7) / 8 * 8);
        Arrays.fill(padded, json.length, padded.length, (byte) ' ');
        return padded;
    }
}
