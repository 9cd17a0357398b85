package dev.penstock.runtime.cluster;

/** A cluster cannot be joined, reached or listened for; the message says why, for people. */
public final class ClusterException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    ClusterException(String message) {
        super(message);
    }

    ClusterException(String message, Throwable cause) {
        super(message, cause);
    }
}
