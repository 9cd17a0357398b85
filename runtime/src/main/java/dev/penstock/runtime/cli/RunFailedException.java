package dev.penstock.runtime.cli;

/** A run ended before it had its result; the message says why, for people. */
final class RunFailedException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    RunFailedException(String message) {
        super(message);
    }
}
