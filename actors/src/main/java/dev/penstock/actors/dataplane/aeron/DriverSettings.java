package dev.penstock.actors.dataplane.aeron;

import dev.penstock.actors.dataplane.DataPlaneException;
import java.nio.file.Path;

/**
 * Settings of a run's media driver.
 *
 * @param parent where the driver's directory is made: shared memory
 * @param run the run's name, part of the directory's
 * @param termLengthBytes as in {@link AeronSettings}
 * @param publications how many the run will have: two for each pair of ranks that exchange tensors,
 *     and as many again for what is received over UDP
 * @param idle how the driver waits
 */
public record DriverSettings(
        Path parent, String run, int termLengthBytes, int publications, PollerMode idle) {
    public DriverSettings {
        if (!AeronSettings.isTermLength(termLengthBytes)) {
            throw new DataPlaneException(
                    "data-plane.term-length: expected a power of two from 64 KiB to 1 GiB, got %d bytes"
                            .formatted(termLengthBytes));
        }
        if (publications < 0) {
            throw new DataPlaneException("publications: expected 0 or more, got " + publications);
        }
    }

    /** A driver that parks while nothing moves. */
    public DriverSettings(Path parent, String run, int termLengthBytes, int publications) {
        this(parent, run, termLengthBytes, publications, PollerMode.ADAPTIVE);
    }

    public DriverSettings withIdle(PollerMode mode) {
        return new DriverSettings(parent, run, termLengthBytes, publications, mode);
    }

    /** A driver in this machine's shared memory. */
    public static DriverSettings inSharedMemory(String run, int termLengthBytes, int publications) {
        return new DriverSettings(
                DriverDirectory.sharedMemory(), run, termLengthBytes, publications);
    }
}
