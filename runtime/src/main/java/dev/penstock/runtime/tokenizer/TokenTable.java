package dev.penstock.runtime.tokenizer;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The tokens of a tokenizer's file and their numbers, as they are written there. Numbers may be
 * unused.
 */
public final class TokenTable {
    /** No tokenizer has as many; a number beyond would only be meant to fill the memory. */
    private static final int MOST = 10_000_000;

    /** Numbers below the greatest that need not be used, beside as many as are. */
    private static final int MOST_UNUSED = 65_536;

    private final Path file;
    private final List<@Nullable String> byId = new ArrayList<>();
    private final Map<String, Integer> ids = new HashMap<>();
    private int used;

    /**
     * @param file for messages
     */
    public TokenTable(Path file) {
        this.file = file;
    }

    /**
     * Adds a token; one that is there already keeps its number if it is the same.
     *
     * @throws TokenizerFileException if the number is none, or another token's, or the token has
     *     another number
     */
    public void add(String token, long id) {
        Integer before = ids.get(token);
        addRow(token, id);
        if (before != null && before != id) {
            throw damaged(
                    "one number for each token", "%d and %d for '%s'".formatted(before, id, token));
        }
    }

    /** Adds a token to which the file gives a number by its place, perhaps more than one. */
    void addRow(String token, long id) {
        if (id < 0 || id >= MOST) {
            throw damaged(
                    "numbers of tokens from 0 to %d".formatted(MOST - 1),
                    "%d for '%s'".formatted(id, token));
        }
        while (byId.size() <= id) {
            byId.add(null);
        }
        String other = byId.get((int) id);
        if (other != null && !other.equals(token)) {
            throw damaged(
                    "one token for each number",
                    "'%s' and '%s' for %d".formatted(other, token, id));
        }
        used += other == null ? 1 : 0;
        byId.set((int) id, token);
        ids.put(token, (int) id);
    }

    /**
     * Checks that the numbers are those of a tokenizer, once all are here.
     *
     * @throws TokenizerFileException if most of them are unused
     */
    public void requireFewUnused() {
        int unused = byId.size() - used;
        if (unused > used + MOST_UNUSED) {
            throw damaged(
                    "numbers of tokens one after the other",
                    "%d tokens with numbers up to %d".formatted(used, byId.size() - 1));
        }
    }

    private TokenizerFileException damaged(String expected, String got) {
        return new TokenizerFileException(file, expected, got, "the file is damaged");
    }

    /** Returns the greatest number and 1. */
    public int size() {
        return byId.size();
    }

    /** Returns the token of a number below {@link #size}; null for one that is not used. */
    public @Nullable String token(int id) {
        return byId.get(id);
    }

    /** Returns a token's number, or null if there is no such token. */
    public @Nullable Integer id(String token) {
        return ids.get(token);
    }
}
