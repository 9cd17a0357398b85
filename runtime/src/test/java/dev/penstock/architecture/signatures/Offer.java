package dev.penstock.architecture.signatures;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** A public type with something of every visibility. */
public final class Offer implements AutoCloseable {
    private final int hidden;

    Offer(int hidden) {
        this.hidden = hidden;
    }

    /** Seen by others. */
    public static @Nullable String first(List<String> words, int... lengths) {
        return words.size() < lengths.length ? null : words.getFirst();
    }

    int notSeen() {
        return hidden;
    }

    @Override
    public void close() {}

    /** Seen by others. */
    public record Part(String name) {}

    record NotSeen(String name) {}
}
