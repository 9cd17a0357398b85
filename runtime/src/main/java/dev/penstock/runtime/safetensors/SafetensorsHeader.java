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
import java.util.Optional;

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

    /** A file that is not what it seems has a problem in each tensor. */
    private static final int SHOWN = 20;

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
        List<String> problems = new ArrayList<>();
        Map<String, String> metadata = new LinkedHashMap<>();
        List<Entry> entries = new ArrayList<>();
        for (Map.Entry<String, JsonNode> field : root.properties()) {
            if (field.getKey().equals(METADATA)) {
                metadata.putAll(metadata(field.getValue(), problems));
            } else {
                entry(field.getKey(), field.getValue(), problems).ifPresent(entries::add);
            }
        }
        if (problems.isEmpty()) {
            checkCoverage(entries, dataBytes, problems);
        }
        if (!problems.isEmpty()) {
            throw new MalformedException(told(problems));
        }
        return new SafetensorsHeader(metadata, entries);
    }

    private static String told(List<String> problems) {
        if (problems.size() == 1) {
            return problems.getFirst();
        }
        int more = problems.size() - SHOWN;
        return "%d problems\n  %s%s"
                .formatted(
                        problems.size(),
                        String.join("\n  ", problems.subList(0, Math.min(SHOWN, problems.size()))),
                        more > 0 ? "\n  and %d more".formatted(more) : "");
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

    private static Map<String, String> metadata(JsonNode node, List<String> problems) {
        Map<String, String> metadata = new LinkedHashMap<>();
        for (Map.Entry<String, JsonNode> field : node.properties()) {
            if (!field.getValue().isTextual()) {
                problems.add(METADATA + "." + field.getKey() + " is not text");
            }
            metadata.put(field.getKey(), field.getValue().textValue());
        }
        return metadata;
    }

    /** Returns a tensor's place; empty where something is wrong with it. */
    private static Optional<Entry> entry(String name, JsonNode node, List<String> problems) {
        int before = problems.size();
        String type = node.path("dtype").asText("");
        if (Arrays.stream(StoredType.values()).noneMatch(known -> known.name().equals(type))) {
            problems.add(
                    "%s: dtype is '%s', expected one of %s"
                            .formatted(name, type, Arrays.toString(StoredType.values())));
        }
        List<Long> shape = longs(name, "shape", node.path("shape"), MAX_DIMENSIONS, problems);
        int beforeOffsets = problems.size();
        List<Long> offsets = longs(name, "data_offsets", node.path("data_offsets"), 2, problems);
        if (problems.size() == beforeOffsets
                && (offsets.size() != 2 || offsets.get(0) > offsets.get(1))) {
            problems.add(
                    "%s: data_offsets are %s, expected begin and end".formatted(name, offsets));
        }
        if (problems.size() > before) {
            return Optional.empty();
        }
        StoredType stored = StoredType.valueOf(type);
        Optional<String> size = sizeProblem(name, stored, shape, offsets.get(1) - offsets.get(0));
        if (size.isPresent()) {
            problems.add(size.get());
            return Optional.empty();
        }
        List<Integer> dimensions = shape.stream().map(Math::toIntExact).toList();
        return Optional.of(new Entry(name, stored, dimensions, offsets.get(0), offsets.get(1)));
    }

    private static List<Long> longs(
            String name, String field, JsonNode node, int limit, List<String> problems) {
        List<Long> values = new ArrayList<>();
        if (!node.isArray() || node.size() > limit) {
            problems.add(
                    "%s: %s is not a list of at most %d numbers".formatted(name, field, limit));
            return values;
        }
        for (JsonNode item : node) {
            if (!item.isIntegralNumber() || !item.canConvertToLong() || item.longValue() < 0) {
                problems.add(
                        "%s: %s holds %s, expected a whole number from 0"
                                .formatted(name, field, item));
                return values;
            }
            values.add(item.longValue());
        }
        return values;
    }

    private static Optional<String> sizeProblem(
            String name, StoredType type, List<Long> shape, long bytes) {
        long wanted = type.bytes();
        for (long dimension : shape) {
            if (dimension > Integer.MAX_VALUE
                    || Math.multiplyHigh(wanted, dimension) != 0
                    || wanted * dimension < 0) {
                return Optional.of(
                        "%s: shape %s is larger than a file can hold".formatted(name, shape));
            }
            wanted *= dimension;
        }
        return wanted == bytes
                ? Optional.empty()
                : Optional.of(
                        "%s: %s %s takes %d bytes, but data_offsets give %d"
                                .formatted(name, type, shape, wanted, bytes));
    }

    private static void checkCoverage(List<Entry> entries, long dataBytes, List<String> problems) {
        List<Entry> sorted =
                entries.stream()
                        .sorted(Comparator.comparingLong(Entry::begin).thenComparing(Entry::end))
                        .toList();
        long next = 0;
        for (Entry entry : sorted) {
            if (entry.begin() != next) {
                problems.add(
                        "%s begins at data byte %d, expected %d: tensors overlap or leave a gap"
                                .formatted(entry.name(), entry.begin(), next));
            }
            next = Math.max(next, entry.end());
        }
        if (next != dataBytes) {
            problems.add(
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
