package dev.penstock.runtime.launch;

import dev.penstock.actors.dataplane.DataPlane;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.FrameListener;
import dev.penstock.actors.dataplane.Opening;
import dev.penstock.actors.dataplane.PeerAddress;
import java.nio.file.Path;
import java.util.Optional;
import java.util.function.BiFunction;

/**
 * A data plane that goes over to another media driver when the run's first one has died, and joins
 * the same one again when that has given this process up.
 */
public final class RestartableDataPlane implements DataPlane {
    private final BiFunction<Path, Optional<PeerAddress>, DataPlane> join;
    private Path directory;
    private DataPlane current;

    /**
     * @param join opens a data plane on the driver in a directory; told where this process was
     *     reached before, for others go on to send there
     */
    public RestartableDataPlane(
            Path directory, BiFunction<Path, Optional<PeerAddress>, DataPlane> join) {
        this.join = join;
        this.directory = directory;
        this.current = join.apply(directory, Optional.empty());
    }

    @Override
    public synchronized void relink(String link) {
        Path wanted = Path.of(link);
        if (!wanted.equals(directory)) {
            join(wanted);
        }
    }

    private void join(Path wanted) {
        PeerAddress former = current.address();
        current.close();
        current = join.apply(wanted, Optional.of(former));
        directory = wanted;
    }

    @Override
    public synchronized Endpoint open(Opening opening, FrameListener listener) {
        if (current.isLost()) {
            join(directory);
        }
        return current.open(opening, listener);
    }

    @Override
    public synchronized PeerAddress address() {
        return current.address();
    }

    @Override
    public synchronized boolean keepsSentTensors() {
        return current.keepsSentTensors();
    }

    @Override
    public synchronized boolean carriesAll() {
        return current.carriesAll();
    }

    @Override
    public synchronized void close() {
        current.close();
    }
}
