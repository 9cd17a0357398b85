package dev.penstock.runtime.tokenizer;

import com.knuddels.jtokkit.Encodings;
import com.knuddels.jtokkit.api.Encoding;
import com.knuddels.jtokkit.api.EncodingType;
import com.knuddels.jtokkit.api.IntArrayList;
import java.io.InputStream;
import java.util.OptionalInt;

/**
 * GPT-2's byte-pair encoding (r50k_base); the vocabulary comes with the library, nothing is
 * downloaded. Text that spells {@code <|endoftext|>} is encoded as text; the token of that name is
 * only ever the separator of documents.
 */
public final class Gpt2Tokenizer implements Tokenizer {
    static final String NAME = "gpt2";

    private static final int END_OF_TEXT = 50_256;
    static final int TOKENS = END_OF_TEXT + 1;

    private final Encoding encoding;

    private Gpt2Tokenizer(Encoding encoding) {
        this.encoding = encoding;
    }

    /** Reads the vocabulary, which takes a few tenths of a second. */
    public static Gpt2Tokenizer load() {
        return new Gpt2Tokenizer(
                Encodings.newLazyEncodingRegistry().getEncoding(EncodingType.R50K_BASE));
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public String fingerprint() {
        return NAME;
    }

    @Override
    public int vocabulary() {
        return TOKENS;
    }

    @Override
    public int documentSeparator() {
        return END_OF_TEXT;
    }

    @Override
    public OptionalInt endOfText() {
        return OptionalInt.of(END_OF_TEXT);
    }

    @Override
    public int[] encode(String text) {
        return encoding.encodeOrdinary(text).toArray();
    }

    @Override
    public TextPieces pieces(InputStream text) {
        return new Utf8Pieces(text, Utf8Pieces.Cut.AT_INK).encodedBy(this::encode);
    }

    @Override
    public byte[] bytes(int token) {
        if (token < 0 || token >= vocabulary()) {
            return Tokenizer.unknown();
        }
        IntArrayList one = new IntArrayList(1);
        one.add(token);
        return encoding.decodeBytes(one);
    }
}
