package dev.penstock.runtime.tokenizer;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.OptionalInt;
import java.util.function.IntConsumer;

/** Turns text into numbers from 0 to {@link #vocabulary()} - 1 and back. Safe to share. */
public interface Tokenizer extends TextEncoder {
    /** The names that {@link #named} accepts. */
    static List<String> names() {
        return List.of(BytesTokenizer.NAME, Gpt2Tokenizer.NAME);
    }

    /**
     * Returns the tokenizer with this name in a configuration.
     *
     * @throws IllegalArgumentException if there is none; the message lists the existing ones
     */
    static Tokenizer named(String name) {
        return switch (name) {
            case BytesTokenizer.NAME -> new BytesTokenizer();
            case Gpt2Tokenizer.NAME -> Gpt2Tokenizer.load();
            default ->
                    throw new IllegalArgumentException(
                            "no tokenizer '%s', expected one of %s".formatted(name, names()));
        };
    }

    /**
     * Returns the tokenizer with this name, or that of the files that it leads to: a folder with a
     * {@code tokenizer.json}, or with a {@code vocab.json} and a {@code merges.txt}, or one of
     * these files.
     *
     * @throws TokenizerFileException if there is neither, or the files cannot be used
     */
    static Tokenizer open(String nameOrPath) {
        return names().contains(nameOrPath)
                ? named(nameOrPath)
                : TokenizerFiles.at(Path.of(nameOrPath)).open(nameOrPath);
    }

    /**
     * Returns how many different tokens {@link #open} would find, without reading all it needs.
     *
     * @throws TokenizerFileException as of {@link #open}
     */
    static int vocabularyOf(String nameOrPath) {
        return switch (nameOrPath) {
            case BytesTokenizer.NAME -> BytesTokenizer.TOKENS;
            case Gpt2Tokenizer.NAME -> Gpt2Tokenizer.TOKENS;
            default -> TokenizerFiles.at(Path.of(nameOrPath)).vocabulary();
        };
    }

    /** Returns whether a folder has the files of a tokenizer. */
    static boolean isIn(Path folder) {
        return TokenizerFiles.areIn(folder);
    }

    /** Returns the name or path that {@link #open} accepts. */
    String name();

    /** Returns what is the same for tokenizers that do the same, wherever their files are. */
    String fingerprint();

    /** Returns the number of different tokens. */
    int vocabulary();

    /** Returns the token that is put between two documents. */
    int documentSeparator();

    /**
     * Returns the token with which a model ends a text; empty if this tokenizer has none that means
     * nothing else. It stands for no text.
     */
    default OptionalInt endOfText() {
        return OptionalInt.empty();
    }

    /**
     * Returns the token from which a model guesses the first one of a text: what the files name as
     * its beginning, else that which ends the text before.
     */
    default int textStart() {
        return documentSeparator();
    }

    /**
     * Encodes a text of any length, in order; memory does not grow with it. Does not close the
     * stream.
     *
     * @throws NotUtf8Exception if this tokenizer needs UTF-8 and the bytes are not
     */
    default void encode(InputStream text, IntConsumer tokens) throws IOException {
        TextPieces pieces = pieces(text);
        for (TextPieces.Piece piece = pieces.next(); piece != null; piece = pieces.next()) {
            for (int token : piece.encode()) {
                tokens.accept(token);
            }
        }
    }

    /**
     * Returns the bytes for which a token stands, which need not be whole characters; a number
     * outside the vocabulary (a model may have more rows than the tokenizer has tokens) gives
     * U+FFFD in UTF-8.
     */
    byte[] bytes(int token);

    /** Returns the text of these tokens; bytes that are not UTF-8 become U+FFFD. */
    default String decode(int... tokens) {
        StreamingDecoder decoder = new StreamingDecoder(this);
        StringBuilder text = new StringBuilder();
        for (int token : tokens) {
            text.append(decoder.next(token));
        }
        return text.append(decoder.end()).toString();
    }

    /** Returns the bytes that stand for a token that does not exist. */
    static byte[] unknown() {
        return "\uFFFD".getBytes(StandardCharsets.UTF_8);
    }
}
