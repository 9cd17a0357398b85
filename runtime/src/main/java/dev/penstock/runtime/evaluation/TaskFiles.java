package dev.penstock.runtime.evaluation;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
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

/** Reads the files of a task whole; they are small. Notes every problem and goes on. */
final class TaskFiles {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final List<DataProblem> problems;

    /**
     * @param problems receives what is wrong
     */
    TaskFiles(List<DataProblem> problems) {
        this.problems = problems;
    }

    /**
     * A line of a file of JSON lines.
     *
     * @param at file and number of the line
     */
    record Line(String at, JsonNode object) {}

    /** Returns the text of a file; empty if it cannot be read. */
    String text(Path file) {
        try (InputStream in = open(file)) {
            return StandardCharsets.UTF_8
                    .newDecoder()
                    .decode(ByteBuffer.wrap(in.readAllBytes()))
                    .toString();
        } catch (CharacterCodingException e) {
            problems.add(
                    new DataProblem(
                            file.toString(), "UTF-8", "other bytes", "convert the file to UTF-8"));
        } catch (IOException e) {
            problems.add(
                    new DataProblem(
                            file.toString(),
                            "a file that can be read",
                            String.valueOf(e.getMessage()),
                            "check the path"));
        }
        return "";
    }

    private static InputStream open(Path file) throws IOException {
        InputStream in = Files.newInputStream(file);
        return file.toString().endsWith(".gz") ? new GZIPInputStream(in) : in;
    }

    /** Returns the objects of a file of JSON lines; blank lines are passed over. */
    List<Line> lines(Path file) {
        List<Line> lines = new ArrayList<>();
        String[] all = text(file).split("\n", -1);
        for (int i = 0; i < all.length; i++) {
            String at = file + ":" + (i + 1);
            if (all[i].isBlank()) {
                continue;
            }
            try {
                JsonNode object = JSON.readTree(all[i]);
                if (object.isObject()) {
                    lines.add(new Line(at, object));
                } else {
                    wrong(at, "a JSON object", "JSON of another type");
                }
            } catch (JsonProcessingException e) {
                wrong(at, "a JSON object", "not JSON: " + JsonMistake.words(e));
            }
        }
        return lines;
    }

    /** Returns a member that is text; a problem and an empty text if it is not. */
    String textOf(Line line, String member) {
        JsonNode value = line.object().path(member);
        if (!value.isTextual()) {
            wrong(line.at(), "the text member '%s'".formatted(member), said(value));
        }
        return value.isTextual() ? value.textValue() : "";
    }

    /** Returns a member that is a list of texts; a problem and an empty list if it is not. */
    List<String> textsOf(Line line, String member) {
        JsonNode value = line.object().path(member);
        List<String> texts = new ArrayList<>();
        value.forEach(text -> texts.add(text.asText()));
        boolean good = value.isArray();
        for (JsonNode text : value) {
            good &= text.isTextual();
        }
        if (!good) {
            wrong(line.at(), "the member '%s', a list of texts".formatted(member), said(value));
        }
        return good ? texts : List.of();
    }

    /** Returns how many problems have been noted. */
    int problems() {
        return problems.size();
    }

    static String said(JsonNode value) {
        return value.isMissingNode() ? "none" : value.toString();
    }

    void wrong(String at, String expected, String got) {
        problems.add(new DataProblem(at, expected, got, "repair the line"));
    }
}
