package dev.penstock.runtime.tokenizer;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.OptionalInt;
import java.util.function.IntConsumer;

/** Turns text into numbers from 0 to {@link #vocabulary()} - 1 and back. Safe to share. */
public interface Tokenizer {
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

    /** Returns the name that {@link #named} accepts. */
    String name();

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

    /** Returns the tokens of a text; none for an empty text. */
    int[] encode(String text);

    /**
     * Encodes a text of any length, in order; memory does not grow with it. Does not close the
     * stream.
     *
     * @throws NotUtf8Exception if this tokenizer needs UTF-8 and the bytes are not
     */
    void encode(InputStream text, IntConsumer tokens) throws IOException;

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
