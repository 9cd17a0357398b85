package dev.penstock.runtime.tokenizer;

import java.io.InputStream;

/** Works through text, whole or cut into pieces that may be worked on side by side. */
public interface TextEncoder {
    /** Returns the tokens of a text; none for an empty text. */
    int[] encode(String text);

    /**
     * Cuts a text of any length into pieces of which the tokens, one after the other, are those of
     * the whole. Does not close the stream.
     */
    TextPieces pieces(InputStream text);
}
