package dev.penstock.actors.dataplane.aeron;

import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.SharedMemoryFullException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * The shared memory that a run's media driver will map. Checked at the start, since a full {@code
 * /dev/shm} kills a process that writes to its map with a bus error, much later.
 */
final class SharedMemoryBudget {
    /** Command buffers, counters and logs of the driver itself. */
    static final long DRIVER_BYTES = 18L << 20;

    private static final int SMALLEST_TERM = 64 * 1024;
    private static final int PAGE = 4096;

    private SharedMemoryBudget() {}

    static long bytes(int termLengthBytes, int publications) {
        return publications * (3L * termLengthBytes + PAGE) + DRIVER_BYTES;
    }

    static void require(Path parent, int termLengthBytes, int publications) {
        try {
            require(
                    parent,
                    termLengthBytes,
                    publications,
                    Files.getFileStore(parent).getUsableSpace());
        } catch (IOException e) {
            throw new DataPlaneException("cannot ask how much room %s has".formatted(parent), e);
        }
    }

    static void require(Path parent, int termLengthBytes, int publications, long freeBytes) {
        long wanted = bytes(termLengthBytes, publications);
        if (wanted <= freeBytes) {
            return;
        }
        throw new SharedMemoryFullException(
                "the data plane wants %d bytes in %s (3 x %d for each of %d publications and %d for the driver), free are %d; %s"
                        .formatted(
                                wanted,
                                parent,
                                termLengthBytes,
                                publications,
                                DRIVER_BYTES,
                                freeBytes,
                                advice(publications, freeBytes)),
                null);
    }

    private static String advice(int publications, long freeBytes) {
        int fits = 1 << 30;
        while (fits >= SMALLEST_TERM && bytes(fits, publications) > freeBytes) {
            fits >>= 1;
        }
        String enlarge = "enlarge shared memory (containers: --shm-size)";
        return fits < SMALLEST_TERM
                ? enlarge
                : "lower data-plane.term-length to %d bytes or %s".formatted(fits, enlarge);
    }
}
