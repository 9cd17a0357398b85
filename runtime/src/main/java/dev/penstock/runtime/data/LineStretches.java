package dev.penstock.runtime.data;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.runtime.data.Stretch.Encoded;
import dev.penstock.runtime.data.Stretch.Part;
import dev.penstock.runtime.safetensors.JsonMistake;
import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** A file of JSON lines; each line is a document. */
final class LineStretches implements FileStretches {
    private static final String BYTE_ORDER_MARK = "\uFEFF";
    private static final String FIRST = ":1";
    private static final int STRETCH_BYTES = 1 << 18;

    /** A text may be as long as its line. */
    private static final ObjectMapper JSON =
            new ObjectMapper(
                    JsonFactory.builder()
                            .streamReadConstraints(
                                    StreamReadConstraints.builder()
                                            .maxStringLength(Documents.LONGEST_BYTES)
                                            .build())
                            .build());

    private final Path file;
    private final LineDocument document;
    private final InputStream in;
    private CorpusPlace place;

    /**
     * @param in the file from this place on; is closed with this
     */
    LineStretches(Path file, LineDocument document, CorpusPlace place, InputStream in) {
        this.file = file;
        this.document = document;
        this.place = place;
        this.in = new BufferedInputStream(in, 1 << 16);
    }

    /** A line that was read; without bytes if it is too long. */
    private record Line(long number, byte @Nullable [] bytes) {}

    @Override
    public @Nullable Stretch next() throws IOException {
        CorpusPlace start = place;
        List<Line> lines = new ArrayList<>();
        long offset = start.offset();
        long number = start.row();
        while (offset - start.offset() < STRETCH_BYTES) {
            ByteArrayOutputStream line = new ByteArrayOutputStream();
            boolean tooLong = false;
            long before = offset;
            int c = in.read();
            for (; c >= 0 && c != '\n'; c = in.read()) {
                offset++;
                tooLong |= line.size() == Documents.LONGEST_BYTES;
                if (!tooLong) {
                    line.write(c);
                }
            }
            if (c < 0 && offset == before) {
                break;
            }
            offset += c < 0 ? 0 : 1;
            lines.add(new Line(++number, tooLong ? null : line.toByteArray()));
        }
        place = new CorpusPlace(start.file(), offset, number, false);
        long bytes = offset - start.offset();
        return lines.isEmpty() ? null : new Stretch(start, bytes, () -> encode(lines));
    }

    private Encoded encode(List<Line> lines) {
        List<Part> parts = new ArrayList<>();
        List<DataProblem> problems = new ArrayList<>();
        for (Line line : lines) {
            String at = file + ":" + line.number();
            byte[] bytes = line.bytes();
            if (bytes == null) {
                problems.add(tooLong(at));
            } else {
                encode(at, bytes, parts, problems);
            }
        }
        return new Encoded(parts, problems);
    }

    private void encode(String at, byte[] line, List<Part> parts, List<DataProblem> problems) {
        try {
            String text =
                    StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(line)).toString();
            if (text.startsWith(BYTE_ORDER_MARK) && at.endsWith(FIRST)) {
                text = text.substring(1);
            }
            if (text.isBlank()) {
                return;
            }
            document.encode(at, JSON.readTree(text), parts, problems);
        } catch (CharacterCodingException e) {
            problems.add(notJson(at, "not UTF-8"));
        } catch (JsonProcessingException e) {
            problems.add(notJson(at, JsonMistake.words(e)));
        }
    }

    private DataProblem notJson(String at, String why) {
        return new DataProblem(
                "data.format",
                "a JSON object in every line",
                at + ": " + why,
                "repair the line" + document.otherwise());
    }

    private DataProblem tooLong(String at) {
        return new DataProblem(
                "data.format",
                "lines of at most %d MiB".formatted(Documents.LONGEST_BYTES >> 20),
                at + ", which is longer",
                "put one document on each line" + document.otherwise());
    }

    @Override
    public void close() throws IOException {
        in.close();
    }
}
