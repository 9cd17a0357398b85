package dev.penstock.actors.spi;

import dev.penstock.cuda.device.DeviceLostException;

/**
 * Told, before anybody else, that a rank's device is lost: a process that cannot use its device any
 * more had better end, as then others know for sure that its ranks are dead. Called on the rank's
 * own thread; it need not return.
 */
@FunctionalInterface
public interface DeviceFailureListener {
    /** Nothing more is done about it than about any other failure. */
    DeviceFailureListener NONE = (_, _, _) -> {};

    /**
     * A rank's device is lost.
     *
     * @param reason names the rank, what it was doing, and the device
     */
    void onLost(int rank, DeviceLostException loss, String reason);

    /** This listener, then that one. */
    default DeviceFailureListener andThen(DeviceFailureListener next) {
        return (rank, loss, reason) -> {
            onLost(rank, loss, reason);
            next.onLost(rank, loss, reason);
        };
    }
}
