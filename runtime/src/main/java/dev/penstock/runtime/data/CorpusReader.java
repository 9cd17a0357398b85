package dev.penstock.runtime.data;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.runtime.tokenizer.NotUtf8Exception;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * Reads files into tokens, documents joined by the tokenizer's separator. Continues after a problem
 * to find the next one. Not thread-safe.
 */
final class CorpusReader {
    private static final int SHOWN = 10;

    /** A document of this length is a file without line breaks, or meant to fill the memory. */
    private static final int LONGEST_LINE = 64 << 20;

    private static final ObjectMapper JSON = new ObjectMapper();

    private final DataSpec spec;
    private final Tokenizer tokenizer;
    private final Tokens tokens;
    private final List<DataProblem> problems = new ArrayList<>();

    CorpusReader(DataSpec spec) {
        this.spec = spec;
        this.tokenizer = spec.tokenizer();
        this.tokens = new Tokens(tokenizer.vocabulary());
    }

    /**
     * Returns all tokens of the files.
     *
     * @throws DataException with the problems of all files, the first few of them
     */
    Tokens read(List<Path> files) {
        for (Path file : files) {
            if (problems.size() >= SHOWN) {
                break;
            }
            read(file);
        }
        if (!problems.isEmpty()) {
            throw new DataException(problems);
        }
        return tokens;
    }

    private void read(Path file) {
        try (InputStream in = open(file)) {
            if (spec.format() == DataFormat.JSONL) {
                readLines(file, in);
            } else {
                separate();
                tokenizer.encode(in, tokens::add);
            }
        } catch (NotUtf8Exception e) {
            problem(
                    "data.tokenizer",
                    "UTF-8, which " + tokenizer.name() + " needs",
                    file + ", where " + e.getMessage(),
                    "convert the file or use data.tokenizer = bytes");
        } catch (AccessDeniedException e) {
            unreadable(file, "no permission");
        } catch (IOException e) {
            unreadable(file, String.valueOf(e.getMessage()));
        }
    }

    private static InputStream open(Path file) throws IOException {
        InputStream raw = Files.newInputStream(file);
        try {
            return file.toString().endsWith(".gz")
                    ? ExpandedFile.of(file, raw)
                    : new BufferedInputStream(raw, 1 << 16);
        } catch (IOException e) {
            raw.close();
            throw e;
        }
    }

    private void readLines(Path file, InputStream in) throws IOException {
        BufferedInputStream lines = new BufferedInputStream(in, 1 << 16);
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        int number = 1;
        int c = lines.read();
        while (c >= 0 && problems.size() < SHOWN) {
            line.reset();
            boolean tooLong = false;
            for (; c >= 0 && c != '\n'; c = lines.read()) {
                tooLong |= line.size() == LONGEST_LINE;
                if (!tooLong) {
                    line.write(c);
                }
            }
            String place = file + ":" + number;
            if (tooLong) {
                tooLong(place);
            } else {
                readLine(place, line.toByteArray());
            }
            number++;
            c = c < 0 ? c : lines.read();
        }
    }

    private void readLine(String place, byte[] line) {
        try {
            String text =
                    StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(line)).toString();
            if (text.isBlank()) {
                return;
            }
            JsonNode field = JSON.readTree(text).path(spec.field());
            if (field.isTextual()) {
                separate();
                for (int token : tokenizer.encode(field.textValue())) {
                    tokens.add(token);
                }
            } else {
                problem(
                        "data.field",
                        "a line with the text member '" + spec.field() + "'",
                        place + ", whose '" + spec.field() + "' is " + kind(field),
                        "name the member that holds the text");
            }
        } catch (CharacterCodingException e) {
            notJson(place, "not UTF-8");
        } catch (JsonProcessingException e) {
            notJson(place, e.getOriginalMessage());
        }
    }

    private static String kind(JsonNode field) {
        return field.isMissingNode()
                ? "missing"
                : "of type " + field.getNodeType().name().toLowerCase(Locale.ROOT);
    }

    private void separate() {
        if (tokens.size() > 0) {
            tokens.add(tokenizer.documentSeparator());
        }
    }

    private void notJson(String place, String why) {
        problem(
                "data.format",
                "a JSON object in every line",
                place + ": " + why,
                "repair the line or use data.format = text");
    }

    private void tooLong(String place) {
        problem(
                "data.format",
                "lines of at most %d MiB".formatted(LONGEST_LINE >> 20),
                place + ", which is longer",
                "put one document on each line or use data.format = text");
    }

    private void unreadable(Path file, String why) {
        problem("data.source", "a file that can be read", file + ": " + why, "check the file");
    }

    private void problem(String key, String expected, String got, String advice) {
        problems.add(new DataProblem(key, expected, got, advice));
    }
}
