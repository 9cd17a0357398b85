package dev.penstock.runtime.cli.command;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectWriter;
import com.fasterxml.jackson.databind.json.JsonMapper;

/** JSON of records, maps and lists. */
final class Json {
    private static final ObjectWriter WRITER =
            JsonMapper.builder().build().writerWithDefaultPrettyPrinter();

    private Json() {}

    static String text(Object document) {
        try {
            return WRITER.writeValueAsString(document);
        } catch (JsonProcessingException e) {
            throw new IllegalStateException("cannot write " + document.getClass() + " as JSON", e);
        }
    }
}
