package dev.penstock.runtime.launch;

import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.aeron.MediaDriverHandle;
import java.nio.file.Path;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The media driver of a run on one machine. Another is started on a thread of its own, and nobody
 * who asks for the driver waits for that.
 */
final class RunDriver implements AutoCloseable {
    private final Supplier<MediaDriverHandle> starter;
    private @Nullable MediaDriverHandle running;
    private boolean starting;
    private boolean closed;

    /**
     * @param starter waits until the driver runs
     */
    RunDriver(Supplier<MediaDriverHandle> starter) {
        this.starter = starter;
    }

    /** Takes a driver that runs. */
    synchronized void begin(MediaDriverHandle first) {
        running = first;
    }

    /** Its directory; empty while another is started. */
    synchronized Optional<Path> directory() {
        return Optional.ofNullable(running).map(MediaDriverHandle::directory);
    }

    /**
     * Starts another one, unless that is under way.
     *
     * @param started told its directory
     * @param failed told why there is none
     */
    void restart(Consumer<Path> started, Consumer<DataPlaneException> failed) {
        MediaDriverHandle former;
        synchronized (this) {
            if (closed || starting) {
                return;
            }
            starting = true;
            former = running;
            running = null;
        }
        Thread.ofVirtual()
                .name("media-driver-restart")
                .start(() -> replace(former, started, failed));
    }

    private void replace(
            @Nullable MediaDriverHandle former,
            Consumer<Path> started,
            Consumer<DataPlaneException> failed) {
        try {
            if (former != null) {
                former.close();
            }
            MediaDriverHandle next = starter.get();
            done(next);
            started.accept(next.directory());
        } catch (DataPlaneException e) {
            done(null);
            failed.accept(e);
        }
    }

    private synchronized void done(@Nullable MediaDriverHandle next) {
        running = next;
        starting = false;
        notifyAll();
    }

    /** Waits for a driver that is being started, and stops it. */
    @Override
    public synchronized void close() {
        closed = true;
        try {
            while (starting) {
                wait();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        if (running != null) {
            running.close();
            running = null;
        }
    }
}
