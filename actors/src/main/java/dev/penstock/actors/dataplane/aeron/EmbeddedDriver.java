package dev.penstock.actors.dataplane.aeron;

import dev.penstock.actors.dataplane.DataPlaneException;
import io.aeron.driver.MediaDriver;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A media driver inside this process, for runs of one process. If the process ends without closing
 * it, its directory is removed all the same.
 */
public final class EmbeddedDriver implements MediaDriverHandle {
    private static final Logger LOG = LoggerFactory.getLogger(EmbeddedDriver.class);

    private final Path directory;
    private final MediaDriver driver;
    private final Thread lastResort;
    private final AtomicBoolean closed = new AtomicBoolean();

    private EmbeddedDriver(Path directory, MediaDriver driver) {
        this.directory = directory;
        this.driver = driver;
        this.lastResort = new Thread(() -> DriverDirectory.delete(directory), "driver-clean-up");
        Runtime.getRuntime().addShutdownHook(lastResort);
    }

    /**
     * Starts a driver in a directory of its own.
     *
     * @throws DataPlaneException if shared memory has no room for the run, or the driver cannot
     *     start
     */
    public static EmbeddedDriver start(DriverSettings settings) {
        SharedMemoryBudget.require(
                settings.parent(), settings.termLengthBytes(), settings.publications());
        Path directory = DriverDirectory.create(settings.parent(), settings.run());
        try {
            MediaDriver driver =
                    MediaDriver.launch(
                            DriverContexts.of(
                                    directory,
                                    settings.termLengthBytes(),
                                    settings.idle(),
                                    settings.publications()));
            return new EmbeddedDriver(directory, driver);
        } catch (Exception e) { // Aeron lets checked ones through undeclared: a full disk
            DriverDirectory.delete(directory);
            throw new DataPlaneException(
                    "the media driver cannot start in %s: %s".formatted(directory, e.getMessage()),
                    e);
        }
    }

    @Override
    public Path directory() {
        return directory;
    }

    /**
     * Stops the driver and removes its directory; close the data planes first. A second call does
     * nothing: a closed driver's counters must not be read, their memory is gone.
     */
    @Override
    public void close() {
        if (closed.getAndSet(true)) {
            return;
        }
        UdpTraffic.of(driver).ifPresent(LOG::info);
        driver.close();
        DriverDirectory.delete(directory);
        try {
            Runtime.getRuntime().removeShutdownHook(lastResort);
        } catch (IllegalStateException e) {
            LOG.debug("closed while the process ends", e);
        }
    }
}
