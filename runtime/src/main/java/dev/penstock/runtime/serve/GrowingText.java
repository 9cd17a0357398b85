package dev.penstock.runtime.serve;

import dev.penstock.runtime.tokenizer.StreamingDecoder;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.util.List;
import java.util.stream.Stream;

/**
 * The text of a choice as its tokens come. What may be the beginning of a text that ends it is held
 * back until that is known. Not thread-safe.
 */
final class GrowingText {
    /** Stands for the end of a text in {@link #heldBack}; no text has it. */
    private static final String END = "\uffff";

    private final StreamingDecoder decoder;
    private final List<String> stops;
    private final String closing;

    /** Texts whose beginnings are held back: the stops, and what closes a text with its end. */
    private final List<String> heldBack;

    private final StringBuilder held = new StringBuilder();
    private boolean stopped;

    /** Characters that were handed on. */
    private int shown;

    GrowingText(Tokenizer tokenizer, List<String> stops) {
        this(tokenizer, stops, "");
    }

    /**
     * @param closing what stands between the text and the token that ends it
     */
    GrowingText(Tokenizer tokenizer, List<String> stops, String closing) {
        decoder = new StreamingDecoder(tokenizer);
        this.stops = stops;
        this.closing = closing;
        heldBack =
                closing.isEmpty()
                        ? stops
                        : Stream.concat(stops.stream(), Stream.of(closing + END)).toList();
    }

    /** Returns the text that is known to belong to the choice by now. */
    String next(int token) {
        return take(decoder.next(token), false);
    }

    /** Returns the rest when no token follows. */
    String end() {
        return take(decoder.end(), true);
    }

    /** Returns the rest when the model has ended the text. */
    String endOfText() {
        String rest = end();
        if (closing.isEmpty() || !rest.endsWith(closing)) {
            return rest;
        }
        shown -= closing.length();
        return rest.substring(0, rest.length() - closing.length());
    }

    /** Returns how many characters are known to belong to the choice. */
    int shown() {
        return shown;
    }

    /** Returns how many characters have come, with those that are held back. */
    int come() {
        return shown + held.length();
    }

    /** Returns whether a text that ends it has come. */
    boolean isStopped() {
        return stopped;
    }

    private String take(String more, boolean last) {
        if (stopped) {
            return "";
        }
        held.append(more);
        int end = stops.stream().mapToInt(held::indexOf).filter(at -> at >= 0).min().orElse(-1);
        stopped = end >= 0;
        int sure = stopped ? end : last ? held.length() : held.length() - heldBack();
        String text = held.substring(0, sure);
        held.delete(0, sure);
        shown += sure;
        return text;
    }

    /** Returns the length of the longest end of the text that begins one of the stops. */
    private int heldBack() {
        int most = 0;
        for (String stop : heldBack) {
            int longest = Math.min(stop.length() - 1, held.length());
            for (int length = longest; length > most; length--) {
                if (stop.startsWith(held.substring(held.length() - length))) {
                    most = length;
                }
            }
        }
        return most;
    }
}
