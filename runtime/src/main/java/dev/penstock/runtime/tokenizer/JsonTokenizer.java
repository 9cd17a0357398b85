package dev.penstock.runtime.tokenizer;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.OptionalInt;
import java.util.stream.IntStream;

/**
 * What a {@code tokenizer.json} describes, as Hugging Face's library does it: the same tokens,
 * without those that its post-processor puts around a text. Text that spells an added token is that
 * token there, and so it is here.
 */
final class JsonTokenizer extends FileTokenizer {
    /**
     * Characters of a text from which on it is encoded alone: the library keeps about a hundred
     * bytes for each token.
     */
    private static final int LONG = 1 << 20;

    private static final List<String> BEFORE = List.of("some words", "Wort 9", "слово", "a1");
    private static final List<String> AFTER = List.of("next word", "Über 2", "слово", "7b");

    private final NativeTokenizers.Handle library;
    private final boolean canBeCut;
    private final Object longTexts = new Object();

    private JsonTokenizer(
            String name, Known known, NativeTokenizers.Handle library, boolean cutsWords) {
        super(name, known);
        this.library = library;
        this.canBeCut = cutsWords && cutsLeaveTokens();
    }

    /**
     * Reads a file.
     *
     * @throws TokenizerFileException if it cannot be used
     */
    static JsonTokenizer open(String name, Path file) {
        TokenizerJson content = TokenizerJson.read(file);
        OptionalInt end = EndOfText.in(file, content.vocabulary());
        try {
            String json = Files.readString(file);
            NativeTokenizers.Handle library = NativeTokenizers.open(file, json);
            var known =
                    new Known(
                            Fingerprint.of(
                                    List.of(file),
                                    "end " + (end.isPresent() ? "" + end.getAsInt() : "none")),
                            content.bytes(),
                            end.orElseGet(() -> newline(file, library)),
                            end,
                            EndOfText.beginning(file, content.vocabulary()));
            return new JsonTokenizer(name, known, library, content.cutsWords());
        } catch (IOException e) {
            throw JsonFiles.unreadable(file, e);
        }
    }

    /** What lies between documents of a tokenizer of bytes: nothing is lost that was in a text. */
    private static int newline(Path file, NativeTokenizers.Handle library) {
        int[] tokens = library.encode("\n");
        if (tokens.length != 1) {
            throw new TokenizerFileException(
                    file,
                    "a token that ends a text, or one for a newline to put between texts",
                    "neither",
                    "name the first beside, as eos_token in tokenizer_config.json");
        }
        return tokens[0];
    }

    /** Tries it: nobody can see from any pattern for words what it does beside a newline. */
    private boolean cutsLeaveTokens() {
        for (String before : BEFORE) {
            for (String after : AFTER) {
                int[] parts =
                        IntStream.concat(
                                        IntStream.of(library.encode(before + "\n")),
                                        IntStream.of(library.encode(after)))
                                .toArray();
                if (!java.util.Arrays.equals(parts, library.encode(before + "\n" + after))) {
                    return false;
                }
            }
        }
        return true;
    }

    @Override
    public int[] encode(String text) {
        if (text.length() < LONG) {
            return library.encode(wellFormed(text));
        }
        synchronized (longTexts) {
            return library.encode(wellFormed(text));
        }
    }

    /** Halves of pairs, which no UTF-8 can hold, become question marks as they do elsewhere. */
    private static String wellFormed(String text) {
        return new String(text.getBytes(StandardCharsets.UTF_8), StandardCharsets.UTF_8);
    }

    @Override
    public TextPieces pieces(InputStream text) {
        return canBeCut
                ? new Utf8Pieces(text, Utf8Pieces.Cut.AT_LETTERS).encodedBy(this::encode)
                : Utf8Pieces.whole(text).encodedBy(this::encode);
    }
}
