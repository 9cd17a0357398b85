package dev.penstock.runtime.data;

import dev.hardwood.InputFile;
import dev.hardwood.metadata.PhysicalType;
import dev.hardwood.reader.ColumnReader;
import dev.hardwood.reader.ParquetFileReader;
import dev.hardwood.reader.Validity;
import dev.hardwood.schema.ColumnSchema;
import dev.penstock.runtime.data.Stretch.Encoded;
import dev.penstock.runtime.data.Stretch.Part;
import dev.penstock.runtime.tokenizer.TextEncoder;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.jspecify.annotations.Nullable;

/** A Parquet file; the text of each row's column is a document. */
final class ParquetStretches implements FileStretches {
    /**
     * Says at every start which instructions it uses; held, as a logger that nobody has is lost.
     */
    private static final Logger LIBRARY = Logger.getLogger("dev.hardwood");

    static {
        LIBRARY.setLevel(Level.WARNING);
    }

    /** Rows that are read at a time. */
    private static final int ROWS = 64;

    private final Path file;
    private final String column;
    private final TextEncoder encoder;
    private final long first;
    private final ParquetFileReader reader;
    private final @Nullable ColumnReader texts;
    private final @Nullable DataProblem problem;
    private CorpusPlace place;
    private boolean ended;

    /**
     * Opens a file.
     *
     * @param place a row where a stretch begins
     * @throws IOException if the file is no Parquet file, or damaged
     */
    ParquetStretches(Path file, String column, TextEncoder encoder, CorpusPlace place)
            throws IOException {
        this.file = file;
        this.column = column;
        this.encoder = encoder;
        this.first = place.row();
        this.place = CorpusPlace.startOf(place.file());
        this.reader = open(file);
        try {
            problem = problem().orElse(null);
            texts =
                    problem == null
                            ? reader.buildColumnReader(column).batchSize(ROWS).build()
                            : null;
        } catch (RuntimeException e) {
            reader.close();
            throw damaged(e);
        }
    }

    private static ParquetFileReader open(Path file) throws IOException {
        try {
            return ParquetFileReader.open(InputFile.of(file));
        } catch (RuntimeException e) {
            throw damaged(e);
        }
    }

    /**
     * What the library says of a file that it cannot read, and of a compression without its jar.
     */
    private static IOException damaged(RuntimeException e) {
        return new IOException("it is no Parquet file that can be read: " + e.getMessage(), e);
    }

    private Optional<DataProblem> problem() {
        List<ColumnSchema> columns = reader.getFileSchema().getColumns();
        Optional<ColumnSchema> named =
                columns.stream()
                        .filter(known -> known.fieldPath().toString().equals(column))
                        .findFirst();
        if (named.isPresent() && isText(named.get())) {
            return Optional.empty();
        }
        String names =
                String.join(
                        ", ",
                        columns.stream()
                                .filter(ParquetStretches::isText)
                                .map(known -> known.fieldPath().toString())
                                .toList());
        return Optional.of(
                new DataProblem(
                        "data.field",
                        "a column of texts '%s'".formatted(column),
                        file + (named.isPresent() ? ", where it holds others" : " without"),
                        names.isEmpty()
                                ? "the file has no texts"
                                : "its columns of texts are " + names));
    }

    private static boolean isText(ColumnSchema column) {
        return column.type() == PhysicalType.BYTE_ARRAY && column.maxRepetitionLevel() == 0;
    }

    @Override
    public @Nullable Stretch next() throws IOException {
        if (problem != null) {
            return ended ? null : wrong(problem);
        }
        try {
            while (texts != null && texts.nextBatch()) {
                CorpusPlace start = place;
                int count = texts.getRecordCount();
                place = new CorpusPlace(start.file(), 0, start.row() + count, false);
                if (start.row() >= first) {
                    byte[] @Nullable [] rows = rows(texts, count);
                    return new Stretch(start, () -> encode(start.row(), rows));
                }
            }
            return null;
        } catch (RuntimeException e) {
            throw damaged(e);
        }
    }

    private Stretch wrong(DataProblem found) {
        ended = true;
        return Stretch.wrong(place, found);
    }

    /** Copies the texts, as the reader uses its memory again. */
    private static byte[] @Nullable [] rows(ColumnReader texts, int count) {
        Validity there = texts.getLeafValidity();
        byte[][] values = texts.getBinaries();
        byte[] @Nullable [] rows = new byte[count][];
        for (int i = 0; i < count; i++) {
            rows[i] = there.isNull(i) ? null : values[i];
        }
        return rows;
    }

    private Encoded encode(long firstRow, byte[] @Nullable [] rows) {
        List<Part> parts = new ArrayList<>();
        List<DataProblem> problems = new ArrayList<>();
        for (int i = 0; i < rows.length; i++) {
            byte[] row = rows[i];
            String at = "%s, row %d".formatted(file, firstRow + i);
            if (row == null) {
                problems.add(
                        new DataProblem(
                                "data.field",
                                "a text '%s' in every row".formatted(column),
                                at + " without",
                                "leave such rows out of the file"));
                continue;
            }
            try {
                String text =
                        StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(row)).toString();
                parts.add(new Part(true, encoder.encode(text)));
            } catch (CharacterCodingException e) {
                problems.add(
                        new DataProblem(
                                "data.field",
                                "a column '%s' of UTF-8".formatted(column),
                                at + ": something else",
                                "name the column that holds the text"));
            }
        }
        return new Encoded(parts, problems);
    }

    @Override
    public void close() throws IOException {
        if (texts != null) {
            texts.close();
        }
        reader.close();
    }
}
