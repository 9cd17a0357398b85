package dev.penstock.runtime.config.reading;

import com.typesafe.config.ConfigOrigin;
import java.util.List;

/** A value is not what its key takes. Never leaves this package: it becomes a {@link Problem}. */
public final class Mismatch extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final String got;
    private final String advice;
    private final transient List<Part> parts;

    /**
     * Something wrong inside a value.
     *
     * @param origin where it is written
     * @param place what to add to the value's key, such as {@code [2].protocol}
     */
    public record Part(
            ConfigOrigin origin, String place, String expected, String got, String advice) {
        /** The same, seen from what holds the value at {@code holder}. */
        public Part in(String holder) {
            return new Part(origin, holder + place, expected, got, advice);
        }
    }

    /**
     * @param got what was found, empty: the value as written
     * @param advice what to try, empty: the key's default
     */
    public Mismatch(String got, String advice) {
        super(got + advice, null, false, false);
        this.got = got;
        this.advice = advice;
        this.parts = List.of();
    }

    public Mismatch() {
        this("", "");
    }

    /**
     * @param parts everything wrong inside the value, at least one thing
     */
    public Mismatch(List<Part> parts) {
        super(parts.toString(), null, false, false);
        this.got = "";
        this.advice = "";
        this.parts = List.copyOf(parts);
    }

    /** What is wrong inside the value; empty where the value as a whole is. */
    public List<Part> parts() {
        return parts;
    }

    public String gotOr(String written) {
        return got.isEmpty() ? written : got;
    }

    public String adviceOr(String usual) {
        return advice.isEmpty() ? usual : advice;
    }
}
