package dev.penstock.runtime.data;

import dev.hardwood.InputFile;
import dev.hardwood.metadata.PhysicalType;
import dev.hardwood.reader.ColumnReader;
import dev.hardwood.reader.ParquetFileReader;
import dev.hardwood.reader.Validity;
import dev.hardwood.schema.ColumnSchema;
import dev.penstock.runtime.data.Stretch.Encoded;
import dev.penstock.runtime.data.Stretch.Part;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
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

    private static final int STRETCH_BYTES = 1 << 18;

    private final Path file;
    private final String column;
    private final Documents documents;
    private final long first;
    private final ParquetFileReader reader;
    private final @Nullable ColumnReader texts;
    private final @Nullable DataProblem problem;

    /** Texts that were read together; null for a row without one, or one that was handed out. */
    private byte[] @Nullable [] batch = new byte[0][];

    /** How many of them were handed out. */
    private int taken;

    /** The row that is handed out next. */
    private CorpusPlace place;

    private boolean ended;

    /**
     * Opens a file.
     *
     * @param place a row where a stretch begins
     * @throws IOException if the file is no Parquet file, or damaged
     */
    ParquetStretches(Path file, String column, Documents documents, CorpusPlace place)
            throws IOException {
        this.file = file;
        this.column = column;
        this.documents = documents;
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
            return texts == null || !hasRows(texts) ? null : take();
        } catch (RuntimeException e) {
            throw damaged(e);
        }
    }

    private boolean hasRows(ColumnReader reading) {
        while (taken == batch.length) {
            if (!reading.nextBatch()) {
                return false;
            }
            batch = rows(reading, reading.getRecordCount());
            taken = Math.clamp(first - place.row(), 0, batch.length);
            place = after(taken);
        }
        return true;
    }

    private Stretch take() {
        CorpusPlace start = place;
        int from = taken;
        long bytes = 0;
        for (; taken < batch.length && bytes < STRETCH_BYTES; taken++) {
            byte[] row = batch[taken];
            bytes += row == null ? 0 : row.length;
        }
        byte[] @Nullable [] rows = Arrays.copyOfRange(batch, from, taken);
        Arrays.fill(batch, from, taken, null); // not needed in memory twice as long
        place = after(taken - from);
        return new Stretch(start, bytes, () -> encode(start.row(), rows));
    }

    private CorpusPlace after(int rows) {
        return new CorpusPlace(place.file(), 0, place.row() + rows, false);
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
            if (row.length > Documents.LONGEST_BYTES) {
                problems.add(
                        new DataProblem(
                                "data.field",
                                "texts of at most %d MiB".formatted(Documents.LONGEST_BYTES >> 20),
                                at + ", which is longer",
                                "divide it into several rows"));
                continue;
            }
            try {
                String text =
                        StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(row)).toString();
                documents.encode(at, text, parts, problems);
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
