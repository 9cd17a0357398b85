package dev.penstock.cuda.device;

/**
 * A device could not do what was asked: out of memory, use after free, a failed library call. The
 * message says what was being done, what was expected, what came and what to try.
 */
public class DeviceException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public DeviceException(String message) {
        super(message);
    }

    public DeviceException(String message, Throwable cause) {
        super(message, cause);
    }
}
