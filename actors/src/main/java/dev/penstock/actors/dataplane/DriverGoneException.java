package dev.penstock.actors.dataplane;

import org.jspecify.annotations.Nullable;

/** The media driver that this process uses has ended, or shows no sign of life. */
public final class DriverGoneException extends DataPlaneException {
    private static final long serialVersionUID = 1L;
    private static final String WHAT = "its media driver is gone: ";

    public DriverGoneException(String details, @Nullable Throwable cause) {
        super(WHAT + details, cause);
    }

    /**
     * Whether a failure was one of these. From another process only its reason arrives, in words.
     */
    public static boolean isReasonOf(String failure) {
        return failure.contains(WHAT);
    }
}
