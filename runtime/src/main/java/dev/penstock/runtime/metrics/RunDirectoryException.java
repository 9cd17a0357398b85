package dev.penstock.runtime.metrics;

import java.nio.file.Path;

/** A run directory cannot be made or opened; the message says what to try. */
public final class RunDirectoryException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final transient Path path;

    RunDirectoryException(Path path, String message) {
        super(message);
        this.path = path;
    }

    RunDirectoryException(Path path, String message, Throwable cause) {
        super(message, cause);
        this.path = path;
    }

    public Path path() {
        return path;
    }
}
