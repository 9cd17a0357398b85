package dev.penstock.runtime.training;

import dev.penstock.runtime.checkpoint.DurableFiles;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.tokenizer.Tokenizer;
import dev.penstock.runtime.tokenizer.TokenizerFileException;
import java.io.IOException;
import java.nio.file.Files;
import java.util.Optional;

/**
 * The tokenizer that a run had when it was last started. Its files may have been moved since, as
 * long as they are the same.
 *
 * @param word its name, or where its files were
 * @param fingerprint of what it does; empty where an earlier Penstock left none and its files are
 *     gone
 */
record TokenizerOfRun(String word, Optional<String> fingerprint) {

    /**
     * Returns the tokenizer of the run in a directory, if that is known.
     *
     * @param word of its configuration
     */
    static Optional<TokenizerOfRun> in(RunDirectory directory, Optional<String> word) {
        return word.map(
                name -> new TokenizerOfRun(name, recorded(directory).or(() -> found(name))));
    }

    private static Optional<String> recorded(RunDirectory directory) {
        try {
            return Files.exists(directory.tokenizer())
                    ? Optional.of(Files.readString(directory.tokenizer()).strip())
                            .filter(text -> !text.isEmpty())
                    : Optional.empty();
        } catch (IOException e) {
            return Optional.empty(); // then its files tell, if they are there
        }
    }

    private static Optional<String> found(String name) {
        try {
            return Optional.of(Tokenizer.open(name).fingerprint());
        } catch (TokenizerFileException e) {
            return Optional.empty();
        }
    }

    /** Returns whether this gives the tokens of one with a name or path; by these if need be. */
    boolean isSameAs(String other) {
        return fingerprint
                .flatMap(own -> found(other).map(own::equals))
                .orElseGet(() -> word.equals(other));
    }

    /** Leaves behind what a later start compares with. */
    static void write(RunDirectory directory, Tokenizer tokenizer) throws IOException {
        DurableFiles.write(directory.tokenizer(), tokenizer.fingerprint() + "\n");
    }
}
