package dev.penstock.actors.dataplane;

import org.jspecify.annotations.Nullable;

/** The data plane broke, or was used against its contract. The message names rank and channel. */
public class DataPlaneException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public DataPlaneException(String message) {
        super(message);
    }

    public DataPlaneException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
