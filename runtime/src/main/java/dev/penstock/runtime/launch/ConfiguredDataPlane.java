package dev.penstock.runtime.launch;

import dev.penstock.actors.dataplane.DataPlane;
import dev.penstock.actors.dataplane.aeron.AeronDataPlane;
import dev.penstock.actors.dataplane.aeron.AeronSettings;
import dev.penstock.actors.dataplane.aeron.DriverSettings;
import dev.penstock.actors.dataplane.aeron.PollerMode;
import dev.penstock.runtime.config.DataPlaneSection;
import java.nio.file.Path;

/**
 * The data plane that a configuration asks for.
 *
 * @param runId names the run's shared memory and its streams
 */
record ConfiguredDataPlane(DataPlaneSection section, String runId) {

    /** Settings for the run's media driver. */
    DriverSettings driver(int ranks) {
        return DriverSettings.inSharedMemory(runId, termLengthBytes(), 2 * ranks);
    }

    /** Joins the media driver in this directory. */
    DataPlane open(Path driverDirectory) {
        return AeronDataPlane.start(
                AeronSettings.ipc(driverDirectory, runId.hashCode())
                        .withTermLength(termLengthBytes())
                        .withMtu(mtuBytes())
                        .withCrc(section.crc())
                        .withPoller(
                                switch (section.poller()) {
                                    case ADAPTIVE -> PollerMode.ADAPTIVE;
                                    case SLEEPING -> PollerMode.SLEEPING;
                                    case SPINNING -> PollerMode.SPINNING;
                                }));
    }

    private int termLengthBytes() {
        return Math.toIntExact(section.termLength().bytes());
    }

    /** Aeron takes frames of at most an eighth of a term. */
    private int mtuBytes() {
        return Math.min(section.mtu(), termLengthBytes() / 8);
    }
}
