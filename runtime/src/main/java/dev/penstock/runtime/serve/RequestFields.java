package dev.penstock.runtime.serve;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.exc.StreamConstraintsException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.JsonNodeType;
import java.io.IOException;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/** The fields of a request, each checked when it is read. A field that is null is not there. */
record RequestFields(JsonNode object) {
    private static final JsonMapper JSON =
            JsonMapper.builder().enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS).build();
    private static final int SHOWN = 40;

    /**
     * Reads a body.
     *
     * @throws ApiException if it is no JSON object
     */
    static RequestFields of(byte[] body) {
        try {
            JsonNode object = JSON.readTree(body);
            if (object == null || !object.isObject()) {
                throw new ApiException(
                        400, "invalid_json", null, "expected a JSON object as the body");
            }
            return new RequestFields(object);
        } catch (StreamConstraintsException e) {
            throw new ApiException(
                    400,
                    "invalid_json",
                    null,
                    "expected a body of JSON that is nested at most %,d deep, with numbers of at most %,d digits"
                            .formatted(
                                    StreamReadConstraints.DEFAULT_MAX_DEPTH,
                                    StreamReadConstraints.DEFAULT_MAX_NUM_LEN));
        } catch (JsonProcessingException e) {
            var place = e.getLocation();
            throw new ApiException(
                    400,
                    "invalid_json",
                    null,
                    "expected a body of JSON, got something else at line %d, column %d"
                            .formatted(
                                    place == null ? 1 : place.getLineNr(),
                                    place == null ? 1 : place.getColumnNr()));
        } catch (IOException e) {
            throw new ApiException(400, "invalid_json", null, "expected a body of JSON in UTF-8");
        }
    }

    /** Returns a value; empty if it is not there. */
    Optional<JsonNode> value(String name) {
        return Optional.ofNullable(object.get(name)).filter(node -> !node.isNull());
    }

    Optional<String> text(String name) {
        return value(name).map(node -> text(name, node));
    }

    static String text(String name, JsonNode node) {
        if (!node.isTextual()) {
            throw ApiException.badValue(name, "a text", shown(node));
        }
        String text = node.textValue();
        if (text.codePoints().anyMatch(RequestFields::isHalf)) {
            throw ApiException.badValue(name, "Unicode", "half a surrogate pair");
        }
        return text;
    }

    /** JSON can write it, UTF-8 cannot. */
    private static boolean isHalf(int codePoint) {
        return codePoint >= Character.MIN_SURROGATE && codePoint <= Character.MAX_SURROGATE;
    }

    boolean flag(String name) {
        Optional<JsonNode> node = value(name);
        if (node.isPresent() && !node.get().isBoolean()) {
            throw ApiException.badValue(name, "true or false", shown(node.get()));
        }
        return node.isPresent() && node.get().booleanValue();
    }

    Optional<Integer> number(String name, int from, int to) {
        return value(name)
                .map(
                        node -> {
                            if (!node.canConvertToExactIntegral()
                                    || !node.canConvertToInt()
                                    || node.intValue() < from
                                    || node.intValue() > to) {
                                throw ApiException.badValue(
                                        name,
                                        "a whole number from %d to %d".formatted(from, to),
                                        shown(node));
                            }
                            return node.intValue();
                        });
    }

    Optional<Long> longNumber(String name) {
        return value(name)
                .map(
                        node -> {
                            if (!node.canConvertToExactIntegral() || !node.canConvertToLong()) {
                                throw ApiException.badValue(
                                        name, "a whole number of 64 bits", shown(node));
                            }
                            return node.longValue();
                        });
    }

    /** Returns a number between two others; both may be reached. */
    double fraction(String name, double from, double to, double usual) {
        Optional<JsonNode> node = value(name);
        if (node.isEmpty()) {
            return usual;
        }
        double number = node.get().isNumber() ? node.get().doubleValue() : Double.NaN;
        if (!(number >= from && number <= to)) {
            throw ApiException.badValue(
                    name, "a number from %s to %s".formatted(from, to), shown(node.get()));
        }
        return number;
    }

    /** Returns a text or a list of texts; none if it is not there. */
    List<String> texts(String name, int most) {
        Optional<JsonNode> node = value(name);
        if (node.isEmpty()) {
            return List.of();
        }
        if (node.get().isArray() && node.get().size() <= most) {
            return node.get().valueStream().map(entry -> text(name, entry)).toList();
        }
        if (node.get().isTextual()) {
            return List.of(node.get().textValue());
        }
        throw ApiException.badValue(
                name, "a text or a list of at most %d texts".formatted(most), shown(node.get()));
    }

    /**
     * Refuses a field that would change the answer and that nothing here obeys, unless it says what
     * is done anyway.
     */
    void requireUnsaid(String name, String... harmless) {
        value(name)
                .filter(node -> !List.of(harmless).contains(node.toString()))
                .filter(node -> !node.isContainerNode() || !node.isEmpty())
                .ifPresent(
                        node -> {
                            throw new ApiException(
                                    400,
                                    "unsupported_parameter",
                                    name,
                                    "%s is not supported; leave it out".formatted(name));
                        });
    }

    /** Returns what to call a value in an error: short, and nothing of a large one. */
    static String shown(JsonNode node) {
        if (node.isContainerNode()) {
            String entries = node.size() == 1 ? "1 entry" : node.size() + " entries";
            return node.getNodeType() == JsonNodeType.ARRAY
                    ? "a list of " + entries
                    : "an object of " + entries;
        }
        String text = node.toString();
        return text.length() <= SHOWN
                ? text
                : node.getNodeType().name().toLowerCase(Locale.ROOT)
                        + " of %,d characters".formatted(text.length());
    }
}
