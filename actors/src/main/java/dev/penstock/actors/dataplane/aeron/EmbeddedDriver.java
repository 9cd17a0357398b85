package dev.penstock.actors.dataplane.aeron;

import dev.penstock.actors.dataplane.DataPlaneException;
import io.aeron.driver.MediaDriver;
import java.nio.file.Path;

/** A media driver inside this process, for runs of one process. */
public final class EmbeddedDriver implements AutoCloseable {
    private final Path directory;
    private final MediaDriver driver;

    private EmbeddedDriver(Path directory, MediaDriver driver) {
        this.directory = directory;
        this.driver = driver;
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
                    MediaDriver.launch(DriverContexts.of(directory, settings.termLengthBytes()));
            return new EmbeddedDriver(directory, driver);
        } catch (RuntimeException e) {
            DriverDirectory.delete(directory);
            throw new DataPlaneException(
                    "the media driver cannot start in %s: %s".formatted(directory, e.getMessage()),
                    e);
        }
    }

    /** For {@link AeronSettings#directory}. */
    public Path directory() {
        return directory;
    }

    /** Stops the driver and removes its directory; close the data planes first. */
    @Override
    public void close() {
        driver.close();
        DriverDirectory.delete(directory);
    }
}
