package dev.penstock.runtime.config.reading;

/** What was asked for cannot be done; the message says everything that is wrong, for people. */
public final class BadInputException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public BadInputException(String message) {
        super(message);
    }
}
