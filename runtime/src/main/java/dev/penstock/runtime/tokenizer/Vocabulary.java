package dev.penstock.runtime.tokenizer;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The tokens of a tokenizer's file by number, as they are written there. Numbers may be unused. */
final class Vocabulary {
    /** No tokenizer has as many; a number beyond would only be meant to fill the memory. */
    private static final int MOST = 10_000_000;

    private final Path file;
    private final List<@Nullable String> byId = new ArrayList<>();
    private final Map<String, Integer> ids = new HashMap<>();

    Vocabulary(Path file) {
        this.file = file;
    }

    /**
     * Adds a token; one that is there already keeps its number if it is the same.
     *
     * @throws TokenizerFileException if the number is none, or another token's
     */
    void add(String token, long id) {
        if (id < 0 || id >= MOST) {
            throw new TokenizerFileException(
                    file,
                    "numbers of tokens from 0 to %d".formatted(MOST - 1),
                    "%d for '%s'".formatted(id, token),
                    "the file is damaged");
        }
        while (byId.size() <= id) {
            byId.add(null);
        }
        String other = byId.get((int) id);
        if (other != null && !other.equals(token)) {
            throw new TokenizerFileException(
                    file,
                    "one token for each number",
                    "'%s' and '%s' for %d".formatted(other, token, id),
                    "the file is damaged");
        }
        byId.set((int) id, token);
        ids.put(token, (int) id);
    }

    /** Returns the greatest number and 1. */
    int size() {
        return byId.size();
    }

    /** Returns the token of a number below {@link #size}; null for one that is not used. */
    @Nullable String token(int id) {
        return byId.get(id);
    }

    /** Returns a token's number, or null if there is no such token. */
    @Nullable Integer id(String token) {
        return ids.get(token);
    }
}
