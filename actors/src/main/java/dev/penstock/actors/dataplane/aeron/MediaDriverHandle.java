package dev.penstock.actors.dataplane.aeron;

import java.nio.file.Path;

/** A media driver to connect to. */
public interface MediaDriverHandle extends AutoCloseable {
    /** For {@link AeronSettings#directory}. */
    Path directory();

    /** Stops the driver if it was started for this run; close the data planes first. */
    @Override
    void close();

    /** A driver that somebody else started and will stop. */
    static MediaDriverHandle running(Path directory) {
        return new MediaDriverHandle() {
            @Override
            public Path directory() {
                return directory;
            }

            @Override
            public void close() {
                // not ours
            }
        };
    }
}
