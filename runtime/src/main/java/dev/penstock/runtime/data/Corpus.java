package dev.penstock.runtime.data;

import dev.penstock.runtime.chat.ChatTemplate;
import dev.penstock.runtime.data.Stretch.Encoded;
import dev.penstock.runtime.tokenizer.TextEncoder;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.LongConsumer;

/**
 * Files of text.
 *
 * @param files in the order in which they are read
 * @param format of all of them; empty: each by its name is JSON lines ({@code .jsonl}), Parquet
 *     ({@code .parquet}) or text
 * @param field member of a JSON line, or column of a table, that holds the text
 * @param template writes chats; there where the format is one of chats
 */
public record Corpus(
        List<Path> files,
        Optional<DataFormat> format,
        String field,
        Optional<ChatTemplate> template) {
    /** Problems that are told of; the rest would only push these off the screen. */
    static final int SHOWN = 10;

    /** Stretches that are read before they are needed, for each thread. */
    private static final int AHEAD = 4;

    /**
     * Bytes of text from which on nothing more is read before it is needed. Texts and their tokens
     * take a small multiple of it, whatever the number of threads, and of the longest document.
     */
    private static final long AHEAD_BYTES = 32 << 20;

    public Corpus {
        files = List.copyOf(files);
    }

    /** Files without chats. */
    public Corpus(List<Path> files, Optional<DataFormat> format, String field) {
        this(files, format, field, Optional.empty());
    }

    /**
     * Finds the files.
     *
     * @param sources files, folders and globs
     * @throws DataException with all that do not exist
     */
    public static Corpus find(List<Path> sources, Optional<DataFormat> format, String field) {
        List<Path> files = new ArrayList<>();
        List<DataProblem> problems = new ArrayList<>();
        for (Path source : sources) {
            try {
                files.addAll(CorpusFiles.find(source));
            } catch (DataException e) {
                problems.addAll(e.problems());
            }
        }
        if (!problems.isEmpty()) {
            throw new DataException(problems);
        }
        return new Corpus(files, format, field);
    }

    /** Returns what a file holds. */
    DataFormat formatOf(Path file) {
        String name = file.toString().replaceFirst("\\.gz$", "");
        return format.orElseGet(
                () ->
                        name.endsWith(".jsonl")
                                ? DataFormat.JSONL
                                : name.endsWith(".parquet") ? DataFormat.PARQUET : DataFormat.TEXT);
    }

    /** Returns how many bytes the files have on disk. */
    public long bytes() {
        return bytesBefore()[files.size()];
    }

    /** Returns how many bytes the files have on disk that come before each, and at last all. */
    long[] bytesBefore() {
        long[] before = new long[files.size() + 1];
        for (int i = 0; i < files.size(); i++) {
            long bytes = 0;
            try {
                bytes = Files.size(files.get(i));
            } catch (IOException e) {
                // it is said when it is read
            }
            before[i + 1] = before[i] + bytes;
        }
        return before;
    }

    /** Takes stretches in their order. */
    interface Sink {
        /** Returns whether to go on. */
        boolean take(CorpusPlace start, Encoded encoded) throws IOException;
    }

    /**
     * Hands all text to an encoder whose tokens are not needed.
     *
     * @param threads that encode at a time
     * @param progress receives how many bytes have been read, about
     * @throws DataException with the problems of all files, the first few of them
     */
    public void encode(TextEncoder encoder, String name, int threads, LongConsumer progress) {
        List<DataProblem> problems = new ArrayList<>();
        long[] before = bytesBefore();
        try {
            encode(
                    encoder,
                    name,
                    CorpusPlace.START,
                    threads,
                    (start, encoded) -> {
                        problems.addAll(encoded.problems());
                        progress.accept(before[start.file()] + start.offset());
                        return problems.size() < SHOWN;
                    });
        } catch (IOException e) {
            throw new IllegalStateException("nothing is written here", e);
        }
        if (!problems.isEmpty()) {
            throw new DataException(problems);
        }
    }

    /**
     * Returns the tokens of all text, documents joined by the tokenizer's separator.
     *
     * @throws DataException with the problems of all files, the first few of them
     */
    public int[] tokens(Tokenizer tokenizer) {
        Tokens read = new CorpusReader(format, field, tokenizer).read(files);
        int[] tokens = new int[Math.toIntExact(read.size())];
        read.copy(0, tokens, 0, tokens.length);
        return tokens;
    }

    /**
     * Encodes everything from a place on. What the sink is handed does not depend on the number of
     * threads.
     *
     * @param name what the encoder is called in a message
     * @throws IOException from the sink
     */
    void encode(TextEncoder encoder, String name, CorpusPlace from, int threads, Sink sink)
            throws IOException {
        ExecutorService workers =
                Executors.newFixedThreadPool(
                        threads, Thread.ofPlatform().daemon().name("encoder-", 0).factory());
        try (CorpusStretches stretches = new CorpusStretches(this, encoder, name, from)) {
            record Pending(CorpusPlace start, long bytes, Future<Encoded> encoded) {}
            var pending = new ArrayDeque<Pending>();
            boolean more = true;
            long ahead = 0;
            while (true) {
                while (more && pending.size() < AHEAD * threads && ahead < AHEAD_BYTES) {
                    Stretch next = stretches.next();
                    more = next != null;
                    if (next != null) {
                        ahead += next.bytes();
                        pending.add(
                                new Pending(
                                        next.start(),
                                        next.bytes(),
                                        workers.submit(next.work()::get)));
                    }
                }
                Pending first = pending.poll();
                if (first == null || !sink.take(first.start(), first.encoded().get())) {
                    return;
                }
                ahead -= first.bytes();
            }
        } catch (ExecutionException e) {
            throw e.getCause() instanceof RuntimeException cause
                    ? cause
                    : new IllegalStateException("encoding failed", e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while encoding", e);
        } finally {
            workers.shutdownNow();
        }
    }
}
