package dev.penstock.runtime.config.reading;

/** A value is not what its key takes. Never leaves this package: it becomes a {@link Problem}. */
public final class Mismatch extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final String got;
    private final String advice;

    /**
     * @param got what was found, empty: the value as written
     * @param advice what to try, empty: the key's default
     */
    public Mismatch(String got, String advice) {
        super(got + advice, null, false, false);
        this.got = got;
        this.advice = advice;
    }

    public Mismatch() {
        this("", "");
    }

    public String gotOr(String written) {
        return got.isEmpty() ? written : got;
    }

    public String adviceOr(String usual) {
        return advice.isEmpty() ? usual : advice;
    }
}
