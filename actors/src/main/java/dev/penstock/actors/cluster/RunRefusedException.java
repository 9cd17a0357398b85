package dev.penstock.actors.cluster;

/** A run that cannot be; the message says everything that is wrong, for people. */
public final class RunRefusedException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public RunRefusedException(String message) {
        super(message);
    }

    public RunRefusedException(String message, Throwable cause) {
        super(message, cause);
    }
}
