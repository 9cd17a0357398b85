package dev.penstock.runtime.tokenizer;

import java.io.IOException;
import org.jspecify.annotations.Nullable;

/** A long text, cut where that changes no token. Read by one thread. */
@FunctionalInterface
public interface TextPieces {
    /** A part of the text; any thread may encode it. */
    interface Piece {
        /** Returns how many bytes of the text it is, at least 1. */
        int bytes();

        /** Returns its tokens. */
        int[] encode();
    }

    /**
     * Returns the next piece; null at the end of the text.
     *
     * @throws NotUtf8Exception if the encoder needs UTF-8 and the bytes are not
     * @throws TextTooLongException if the text has no place to cut for longer than can be encoded
     */
    @Nullable Piece next() throws IOException;
}
