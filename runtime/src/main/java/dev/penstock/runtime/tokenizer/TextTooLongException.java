package dev.penstock.runtime.tokenizer;

import java.io.IOException;

/** Thrown for a text that is too long to be encoded whole and has no place where it may be cut. */
public final class TextTooLongException extends IOException {
    private static final long serialVersionUID = 1L;

    private final int longest;
    private final String place;

    /**
     * @param longest characters without such a place
     * @param place where a text is cut, such as "a newline between letters"; empty: nowhere
     */
    public TextTooLongException(int longest, String place) {
        super("more than %d Mi characters without a place to cut".formatted(longest >> 20));
        this.longest = longest;
        this.place = place;
    }

    /**
     * Returns what would have been right.
     *
     * @param encoder what the encoder is called
     */
    public String expected(String encoder) {
        return place.isEmpty()
                ? "documents of at most %d Mi characters, which %s takes whole"
                        .formatted(longest >> 20, encoder)
                : "%s at least every %d Mi characters, where text is cut for %s"
                        .formatted(place, longest >> 20, encoder);
    }

    /** Returns what to try. */
    public String advice() {
        return place.isEmpty()
                ? "use JSON lines, a document each (data.format = jsonl)"
                : "check that it is text; data.tokenizer = bytes takes anything";
    }
}
