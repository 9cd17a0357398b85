package dev.penstock.runtime.training;

/** A run ended before it had its result; the message says why, for people. */
public final class RunFailedException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public RunFailedException(String message) {
        super(message);
    }
}
