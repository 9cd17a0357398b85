package dev.penstock.runtime.tokenizer;

import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;

/** What a tokenizer of files knows once they are read. */
abstract class FileTokenizer implements Tokenizer {
    private final String name;
    private final Known known;

    /**
     * @param name what it is called
     */
    FileTokenizer(String name, Known known) {
        this.name = name;
        this.known = known;
    }

    /**
     * The same for tokenizers that do the same.
     *
     * @param bytes for which each token stands; none for a number without token
     * @param separator of documents
     * @param endOfText empty if no token means it
     * @param beginning empty if the files name none
     */
    record Known(
            String fingerprint,
            byte[] @Nullable [] bytes,
            int separator,
            OptionalInt endOfText,
            OptionalInt beginning) {}

    @Override
    public final String name() {
        return name;
    }

    @Override
    public final String fingerprint() {
        return known.fingerprint;
    }

    @Override
    public final int vocabulary() {
        return known.bytes.length;
    }

    @Override
    public final int documentSeparator() {
        return known.separator;
    }

    @Override
    public final int textStart() {
        return known.beginning.orElse(known.separator);
    }

    @Override
    public final OptionalInt endOfText() {
        return known.endOfText;
    }

    @Override
    public final byte[] bytes(int token) {
        byte[] stored = token < 0 || token >= vocabulary() ? null : known.bytes[token];
        return stored == null ? Tokenizer.unknown() : stored.clone();
    }
}
