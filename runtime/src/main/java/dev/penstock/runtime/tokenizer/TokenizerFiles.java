package dev.penstock.runtime.tokenizer;

import static java.util.Objects.requireNonNull;

import java.nio.file.Files;
import java.nio.file.Path;

/**
 * The files of a tokenizer, found.
 *
 * @param file the {@code tokenizer.json}, or the {@code vocab.json} that has its {@code merges.txt}
 *     beside
 */
record TokenizerFiles(Path file) {
    /**
     * Returns the files of a folder, of which a {@code tokenizer.json} comes first, or those that
     * belong to a file.
     *
     * @throws TokenizerFileException if there are none
     */
    static TokenizerFiles at(Path path) {
        if (Files.isDirectory(path)) {
            if (!areIn(path)) {
                throw none(path, "a folder without");
            }
            Path json = path.resolve(TokenizerJson.FILE);
            return new TokenizerFiles(
                    Files.exists(json) ? json : path.resolve(BytePairTokenizer.VOCABULARY));
        }
        if (!Files.exists(path)) {
            throw none(path, "nothing there");
        }
        String name = String.valueOf(path.getFileName());
        if (name.equals(BytePairTokenizer.VOCABULARY) || name.equals(BytePairTokenizer.MERGES)) {
            return new TokenizerFiles(path.resolveSibling(BytePairTokenizer.VOCABULARY));
        }
        if (name.endsWith(".json")) {
            return new TokenizerFiles(path);
        }
        throw none(path, "another file");
    }

    static boolean areIn(Path folder) {
        return Files.exists(folder.resolve(TokenizerJson.FILE))
                || (Files.exists(folder.resolve(BytePairTokenizer.VOCABULARY))
                        && Files.exists(folder.resolve(BytePairTokenizer.MERGES)));
    }

    private static TokenizerFileException none(Path path, String got) {
        return new TokenizerFileException(
                path,
                "a folder with tokenizer.json, or with vocab.json and merges.txt, or one of them",
                got,
                "or name one of " + String.join(", ", Tokenizer.names()));
    }

    int vocabulary() {
        return isPair()
                ? BytePairTokenizer.vocabulary(folder()).size()
                : TokenizerJson.read(file).vocabulary().size();
    }

    Tokenizer open(String name) {
        return isPair() ? BytePairTokenizer.open(name, folder()) : JsonTokenizer.open(name, file);
    }

    private boolean isPair() {
        return file.endsWith(BytePairTokenizer.VOCABULARY);
    }

    private Path folder() {
        return requireNonNull(file.toAbsolutePath().getParent(), "a file is in a folder");
    }
}
