package dev.penstock.runtime.config;

/** A value is not what its key takes. Never leaves this package: it becomes a {@link Problem}. */
final class Mismatch extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final String got;
    private final String advice;

    /**
     * @param got what was found, empty: the value as written
     * @param advice what to try, empty: the key's default
     */
    Mismatch(String got, String advice) {
        super(got + advice, null, false, false);
        this.got = got;
        this.advice = advice;
    }

    Mismatch() {
        this("", "");
    }

    String gotOr(String written) {
        return got.isEmpty() ? written : got;
    }

    String adviceOr(String usual) {
        return advice.isEmpty() ? usual : advice;
    }
}
