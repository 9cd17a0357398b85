package dev.penstock.cuda.device;

/**
 * A device is of no use to this process any more: its driver gives the same answer to every call
 * until the process ends. Another process may open the device, unless it {@linkplain #isGone is
 * gone}.
 */
public final class DeviceLostException extends DeviceException {
    private static final long serialVersionUID = 1L;

    private final boolean gone;

    /**
     * @param gone whether no process should be given the device again
     */
    public DeviceLostException(String message, boolean gone, Throwable cause) {
        super(message, cause);
        this.gone = gone;
    }

    /**
     * Whether the device itself is gone or not to be trusted, not only this process's use of it.
     */
    public boolean isGone() {
        return gone;
    }
}
