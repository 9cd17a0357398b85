package dev.penstock.runtime.data.labelled;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.runtime.data.DataException;
import dev.penstock.runtime.data.DataProblem;
import dev.penstock.runtime.safetensors.JsonMistake;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.GZIPInputStream;

/**
 * Reads JSON lines whose members are texts and a label, as in MNLI:
 *
 * <pre>
 *   {"premise": "He sleeps.", "hypothesis": "He is awake.", "label": "contradiction"}
 * </pre>
 *
 * @param fields names of the members that are texts, one or two
 * @param label name of the member that is the label, a word or a whole number
 */
public record LabelledLines(List<String> fields, String label) {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int SHOWN = 10;

    public LabelledLines {
        fields = List.copyOf(fields);
        if (fields.isEmpty() || fields.size() > 2) {
            throw new IllegalArgumentException("expected one text or two, got " + fields);
        }
    }

    /**
     * A line.
     *
     * @param label empty where the line has none
     */
    public record Line(List<String> texts, String label) {}

    /**
     * Reads a file whole; blank lines are passed over.
     *
     * @param labelled whether every line needs a label
     * @throws DataException with the first problems
     */
    public List<Line> read(Path file, boolean labelled) {
        List<DataProblem> problems = new ArrayList<>();
        List<Line> lines = new ArrayList<>();
        String[] all = text(file).split("\n", -1);
        for (int i = 0; i < all.length && problems.size() < SHOWN; i++) {
            if (!all[i].isBlank()) {
                line(file + ":" + (i + 1), all[i], labelled, lines, problems);
            }
        }
        if (lines.isEmpty() && problems.isEmpty()) {
            problems.add(
                    problem("data.source", "lines", file + ", which has none", "check the path"));
        }
        if (!problems.isEmpty()) {
            throw new DataException(problems);
        }
        return lines;
    }

    private void line(
            String at,
            String text,
            boolean labelled,
            List<Line> lines,
            List<DataProblem> problems) {
        JsonNode object;
        try {
            object = JSON.readTree(text);
        } catch (JsonProcessingException e) {
            problems.add(
                    problem(
                            "data.source",
                            "a JSON object",
                            at + ": " + JsonMistake.words(e),
                            "write one object in each line"));
            return;
        }
        int before = problems.size();
        List<String> texts = new ArrayList<>();
        for (String field : fields) {
            JsonNode member = object.path(field);
            if (!member.isTextual()) {
                problems.add(
                        problem(
                                "data.field",
                                "a line with the text member '" + field + "'",
                                at + ", which has " + (member.isMissingNode() ? "none" : member),
                                "name the members that are texts"));
            }
            texts.add(member.asText());
        }
        JsonNode name = object.path(label);
        boolean named = name.isTextual() && !name.asText().isBlank();
        if (labelled && !named && !name.isIntegralNumber()) {
            problems.add(
                    problem(
                            "label",
                            "a line with the label '" + label + "', a word or a whole number",
                            at + ", which has " + (name.isMissingNode() ? "none" : name),
                            "name the member that is the label"));
        }
        if (problems.size() == before) {
            lines.add(new Line(texts, name.asText("")));
        }
    }

    private static String text(Path file) {
        try (InputStream raw = Files.newInputStream(file);
                InputStream in = file.toString().endsWith(".gz") ? new GZIPInputStream(raw) : raw) {
            return StandardCharsets.UTF_8
                    .newDecoder()
                    .decode(ByteBuffer.wrap(in.readAllBytes()))
                    .toString();
        } catch (CharacterCodingException e) {
            throw refused(file + ", which is not UTF-8", "convert it to UTF-8");
        } catch (IOException e) {
            throw refused(String.valueOf(e.getMessage()), "check the path");
        }
    }

    private static DataException refused(String got, String advice) {
        return new DataException(
                List.of(problem("data.source", "a file of JSON lines", got, advice)));
    }

    private static DataProblem problem(String key, String expected, String got, String advice) {
        return new DataProblem(key, expected, got, advice);
    }
}
