package dev.penstock.actors.dataplane;

import org.jspecify.annotations.Nullable;

/** Shared memory has no room for a driver or a link now; it may have some later. */
public final class SharedMemoryFullException extends DataPlaneException {
    private static final long serialVersionUID = 1L;
    private static final String WHAT = "no room in shared memory: ";

    public SharedMemoryFullException(String details, @Nullable Throwable cause) {
        super(WHAT + details, cause);
    }

    /**
     * Whether a failure was one of these. From another process only its reason arrives, in words.
     */
    public static boolean isReasonOf(String failure) {
        return failure.contains(WHAT);
    }
}
