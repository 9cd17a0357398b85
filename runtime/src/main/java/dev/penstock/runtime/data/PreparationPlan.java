package dev.penstock.runtime.data;

import dev.penstock.runtime.tokenizer.Tokenizer;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;

/**
 * What decides about the tokens of a preparation, so that one that was cut short continues only as
 * what it was.
 *
 * @param shardTokens of every shard but the last
 * @param field member of a JSON line, or column of a table, that holds the text
 */
record PreparationPlan(
        TokenizerName tokenizer, long shardTokens, String field, List<Source> files) {
    /**
     * The tokenizer.
     *
     * @param fingerprint is the same wherever its files are
     * @param separator the token between two documents
     */
    record TokenizerName(String name, String fingerprint, int vocabulary, int separator) {}

    /** A file; one of another size or age is another file. */
    record Source(String path, String format, long bytes, long modified) {}

    static PreparationPlan of(Corpus corpus, Tokenizer tokenizer, long shardTokens) {
        List<Source> sources = new ArrayList<>();
        List<DataProblem> problems = new ArrayList<>();
        for (Path file : corpus.files()) {
            try {
                sources.add(
                        new Source(
                                file.toAbsolutePath().normalize().toString(),
                                corpus.formatOf(file).name().toLowerCase(Locale.ROOT),
                                Files.size(file),
                                Files.getLastModifiedTime(file).toMillis()));
            } catch (IOException e) {
                problems.add(
                        new DataProblem(
                                "FILE",
                                "a file that can be read",
                                file + ": " + e.getMessage(),
                                "check the file"));
            }
        }
        if (!problems.isEmpty()) {
            throw new DataException(problems);
        }
        var name =
                new TokenizerName(
                        tokenizer.name(),
                        tokenizer.fingerprint(),
                        tokenizer.vocabulary(),
                        tokenizer.documentSeparator());
        return new PreparationPlan(name, shardTokens, corpus.field(), List.copyOf(sources));
    }

    int tokenBytes() {
        return tokenizer.vocabulary() <= 1 << 16 ? 2 : 4;
    }

    /** Returns the SHA-256 of all that matters. */
    String hash() {
        StringBuilder text = new StringBuilder();
        text.append(tokenizer.fingerprint()).append('\n');
        text.append(tokenizer.vocabulary()).append(' ').append(tokenizer.separator());
        text.append(' ').append(shardTokens).append('\n').append(field).append('\n');
        for (Source file : files) {
            text.append(file).append('\n');
        }
        try {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            return HexFormat.of()
                    .formatHex(digest.digest(text.toString().getBytes(StandardCharsets.UTF_8)));
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("this Java has no SHA-256", e);
        }
    }
}
