package dev.penstock.runtime.data;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.Locale;

/**
 * A line of which one member is the text.
 *
 * @param field its name
 */
record FieldDocument(String field, Documents documents) implements LineDocument {
    @Override
    public void encode(
            String at, JsonNode line, List<Stretch.Part> parts, List<DataProblem> problems) {
        JsonNode member = line.path(field);
        if (member.isTextual()) {
            documents.encode(at, member.textValue(), parts, problems);
        } else {
            problems.add(
                    new DataProblem(
                            "data.field",
                            "a line with the text member '" + field + "'",
                            at + ", whose '" + field + "' is " + kind(member),
                            "name the member that holds the text"));
        }
    }

    @Override
    public String otherwise() {
        return " or use data.format = text";
    }

    private static String kind(JsonNode member) {
        return member.isMissingNode()
                ? "missing"
                : "of type " + member.getNodeType().name().toLowerCase(Locale.ROOT);
    }
}
