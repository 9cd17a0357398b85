package dev.penstock.runtime.data;

import dev.penstock.runtime.tokenizer.NotUtf8Exception;
import dev.penstock.runtime.tokenizer.TextEncoder;
import dev.penstock.runtime.tokenizer.TextTooLongException;
import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.channels.Channels;
import java.nio.channels.SeekableByteChannel;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * The stretches of a corpus, file by file. A file that cannot be read on gives a stretch that says
 * so, and the next file follows. Read by one thread.
 */
final class CorpusStretches implements AutoCloseable {
    private final Corpus corpus;
    private final TextEncoder encoder;
    private final String encoderName;
    private CorpusPlace opened;
    private @Nullable FileStretches current;

    /**
     * @param encoderName what the encoder is called in a message
     * @param place where to begin
     */
    CorpusStretches(Corpus corpus, TextEncoder encoder, String encoderName, CorpusPlace place) {
        this.corpus = corpus;
        this.encoder = encoder;
        this.encoderName = encoderName;
        this.opened = place;
    }

    /** Returns the next stretch; null at the end of the corpus. */
    @Nullable Stretch next() {
        while (opened.file() < corpus.files().size()) {
            try {
                if (current == null) {
                    current = open();
                }
                Stretch next = current.next();
                if (next != null) {
                    return next;
                }
                toNextFile();
            } catch (IOException e) {
                Stretch wrong = Stretch.wrong(opened, problem(e));
                toNextFile();
                return wrong;
            }
        }
        return null;
    }

    private void toNextFile() {
        close();
        opened = CorpusPlace.startOf(opened.file() + 1);
    }

    private Path file() {
        return corpus.files().get(opened.file());
    }

    private FileStretches open() throws IOException {
        Path file = file();
        return switch (corpus.formatOf(file)) {
            case TEXT -> new TextStretches(encoder, opened, openAt(file, opened.offset()));
            case JSONL ->
                    new LineStretches(
                            file,
                            new FieldDocument(corpus.field(), documents()),
                            opened,
                            openAt(file, opened.offset()));
            case CHAT ->
                    new LineStretches(
                            file,
                            new ChatDocument(corpus.template().orElseThrow(), documents()),
                            opened,
                            openAt(file, opened.offset()));
            case PARQUET -> new ParquetStretches(file, corpus.field(), documents(), opened);
            case TOKENS, GIVEN -> throw new IllegalStateException(file + " is not text");
        };
    }

    private Documents documents() {
        return new Documents(encoder, encoderName);
    }

    /** A compressed file can only be read from its beginning. */
    private static InputStream openAt(Path file, long offset) throws IOException {
        if (!file.toString().endsWith(".gz")) {
            SeekableByteChannel channel = Files.newByteChannel(file);
            channel.position(offset);
            return new BufferedInputStream(Channels.newInputStream(channel), 1 << 16);
        }
        InputStream raw = Files.newInputStream(file);
        try {
            InputStream expanded = ExpandedFile.of(file, raw);
            expanded.skipNBytes(offset);
            return expanded;
        } catch (IOException e) {
            raw.close();
            throw e;
        }
    }

    private DataProblem problem(IOException e) {
        Path file = file();
        return switch (e) {
            case NotUtf8Exception bad ->
                    new DataProblem(
                            "data.tokenizer",
                            "UTF-8, which " + encoderName + " needs",
                            "%s, where byte %d is not UTF-8"
                                    .formatted(file, opened.offset() + bad.offset()),
                            "convert the file or use data.tokenizer = bytes");
            case TextTooLongException tooLong ->
                    new DataProblem(
                            "data.format",
                            tooLong.expected(encoderName),
                            file + ", which is longer",
                            tooLong.advice());
            case AccessDeniedException _ -> unreadable(file, "no permission");
            default -> unreadable(file, String.valueOf(e.getMessage()));
        };
    }

    private static DataProblem unreadable(Path file, String why) {
        return new DataProblem(
                "data.source", "a file that can be read", file + ": " + why, "check the file");
    }

    @Override
    public void close() {
        if (current != null) {
            try {
                current.close();
            } catch (IOException e) {
                // it was only read
            }
            current = null;
        }
    }
}
