package dev.penstock.runtime.tokenizer;

import java.io.IOException;

/** Thrown for a document that an encoder can only take whole and that is too long for that. */
public final class TextTooLongException extends IOException {
    private static final long serialVersionUID = 1L;

    private final int longest;

    /**
     * @param longest characters that a document may have
     */
    public TextTooLongException(int longest) {
        super("a document of more than %d Mi characters".formatted(longest >> 20));
        this.longest = longest;
    }

    /** Returns how many characters a document may have. */
    public int longest() {
        return longest;
    }
}
