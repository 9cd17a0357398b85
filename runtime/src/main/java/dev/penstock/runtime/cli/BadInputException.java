package dev.penstock.runtime.cli;

/** What was asked for cannot be done; the message says everything that is wrong, for people. */
final class BadInputException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    BadInputException(String message) {
        super(message);
    }
}
