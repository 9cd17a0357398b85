package dev.penstock.runtime.tokenizer;

import java.io.InputStream;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;

/**
 * Counts the words of texts, as GPT-2 cuts them; gives no tokens. Any number of threads may hand it
 * text: what is counted does not depend on them.
 */
public final class WordCounts implements TextEncoder {
    private final Map<String, LongAdder> counts = new ConcurrentHashMap<>();

    @Override
    public int[] encode(String text) {
        Map<String, Long> here = new HashMap<>();
        Gpt2Words.forEach(text, word -> here.merge(word, 1L, Long::sum));
        here.forEach(
                (word, count) -> counts.computeIfAbsent(word, _ -> new LongAdder()).add(count));
        return new int[0];
    }

    @Override
    public TextPieces pieces(InputStream text) {
        return new Utf8Pieces(text, Utf8Pieces.Cut.AT_INK).encodedBy(this::encode);
    }

    /** Returns how many different words there are. */
    public int different() {
        return counts.size();
    }

    /** Returns the words and how often each came, in the order of the words. */
    Map<String, Long> sorted() {
        Map<String, Long> sorted = new TreeMap<>();
        counts.forEach((word, count) -> sorted.put(word, count.sum()));
        return sorted;
    }
}
