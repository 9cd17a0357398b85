package dev.penstock.runtime.metrics;

import java.nio.file.Path;

/** Thrown if a run directory cannot be created or opened; the message suggests what to try. */
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
