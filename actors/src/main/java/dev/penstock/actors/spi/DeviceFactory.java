package dev.penstock.actors.spi;

import dev.penstock.cuda.device.Device;

/** Opens the device of a rank. Called on the shard actor's own thread. */
@FunctionalInterface
public interface DeviceFactory {
    Device open(int rank);
}
