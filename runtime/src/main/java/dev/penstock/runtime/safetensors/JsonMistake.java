package dev.penstock.runtime.safetensors;

import com.fasterxml.jackson.core.JsonLocation;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.exc.StreamConstraintsException;
import java.util.regex.Pattern;

/** What is wrong with a text that should be JSON, without the names of the library that says so. */
public final class JsonMistake {
    private static final Pattern SOURCE =
            Pattern.compile("(?s)\\s*(\\((for|start marker)[^)]*)?( at )?\\[Source:.*");
    private static final Pattern LIBRARY = Pattern.compile("(?s),? *\\(?`?Stream(Read|Write).*");

    private JsonMistake() {}

    /** Returns it, with the place if that is known, as {@code it ends too early (column 9)}. */
    public static String words(JsonProcessingException e) {
        String what =
                switch (e) {
                    case StreamConstraintsException limit -> limit(limit.getOriginalMessage());
                    default -> plain(e.getOriginalMessage());
                };
        JsonLocation at = e.getLocation();
        return at == null || at.getColumnNr() < 1
                ? what
                : at.getLineNr() > 1
                        ? "%s (line %d, column %d)"
                                .formatted(what, at.getLineNr(), at.getColumnNr())
                        : "%s (column %d)".formatted(what, at.getColumnNr());
    }

    private static String limit(String message) {
        return message.contains("esting depth")
                ? "nested too deep"
                : message.contains("umber") ? "a number is too long" : "a text is too long";
    }

    private static String plain(String message) {
        if (message.startsWith("Unexpected end-of-input")) {
            return "it ends too early";
        }
        return LIBRARY.matcher(SOURCE.matcher(message).replaceAll("")).replaceAll("").strip();
    }
}
