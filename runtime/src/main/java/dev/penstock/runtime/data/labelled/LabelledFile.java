package dev.penstock.runtime.data.labelled;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.runtime.safetensors.SafetensorsFile;
import dev.penstock.runtime.safetensors.SafetensorsWriter;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.StoredTensor;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.LongStream;

/**
 * Rows with labels in a safetensors file: {@code tokens} of all rows after each other, and {@code
 * lengths}, {@code second} and {@code labels} of each row, all I64. Its metadata names the labels.
 *
 * @param labels names of the classes, in the order of their numbers
 */
public record LabelledFile(List<String> labels, List<LabelledRow> rows) {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String LABELS = "labels";

    public LabelledFile {
        labels = List.copyOf(labels);
        rows = List.copyOf(rows);
    }

    /** Writes the file. */
    public void write(Path file) throws IOException {
        long[] tokens = rows.stream().flatMapToLong(LabelledFile::tokens).toArray();
        SafetensorsWriter.write(
                file,
                Map.of(LABELS, JSON.writeValueAsString(labels)),
                List.of(
                        StoredTensor.ofLongs("tokens", List.of(tokens.length), tokens),
                        each("lengths", rows.stream().mapToLong(row -> row.tokens().length)),
                        each("second", rows.stream().mapToLong(LabelledRow::second)),
                        each(LABELS, rows.stream().mapToLong(LabelledRow::label))));
    }

    private static LongStream tokens(LabelledRow row) {
        return LongStream.range(0, row.tokens().length).map(i -> row.tokens()[(int) i]);
    }

    private static StoredTensor each(String name, LongStream numbers) {
        long[] all = numbers.toArray();
        return StoredTensor.ofLongs(name, List.of(all.length), all);
    }

    /**
     * Reads such a file.
     *
     * @throws StoredFileException if it is none, or its numbers do not fit together
     */
    public static LabelledFile read(Path path) {
        try (SafetensorsFile file = SafetensorsFile.open(path)) {
            StoredTensor tokens = file.tensor("tokens");
            StoredTensor lengths = file.tensor("lengths");
            StoredTensor second = file.tensor("second");
            StoredTensor labels = file.tensor(LABELS);
            List<String> names = names(path, file.metadata().getOrDefault(LABELS, "[]"));
            List<LabelledRow> rows = new ArrayList<>();
            long at = 0;
            for (long i = 0; i < lengths.elements(); i++) {
                long length = lengths.integer(i);
                long label = i < labels.elements() ? labels.integer(i) : names.size();
                long border = i < second.elements() ? second.integer(i) : 0;
                if (length < 2 || length > tokens.elements() - at) {
                    throw broken(path, "row %d has %d tokens".formatted(i, length));
                }
                if (label < 0 || label >= names.size() || border < 2 || border > length) {
                    throw broken(
                            path,
                            "row %d has label %d of %d, and its second text begins at %d of %d"
                                    .formatted(i, label, names.size(), border, length));
                }
                int[] own = new int[Math.toIntExact(length)];
                for (int t = 0; t < own.length; t++) {
                    own[t] = Math.toIntExact(tokens.integer(at + t));
                }
                rows.add(new LabelledRow(own, (int) border, (int) label));
                at += length;
            }
            return new LabelledFile(names, rows);
        } catch (ArithmeticException e) {
            throw broken(path, String.valueOf(e.getMessage()));
        }
    }

    private static List<String> names(Path path, String json) {
        try {
            return JSON.readValue(json, new TypeReference<List<String>>() {});
        } catch (JsonProcessingException e) {
            throw broken(path, "its labels are " + json);
        }
    }

    private static StoredFileException broken(Path path, String got) {
        return new StoredFileException(
                path,
                "expected texts with labels, as penstock data prepare --label makes them, but "
                        + got);
    }
}
