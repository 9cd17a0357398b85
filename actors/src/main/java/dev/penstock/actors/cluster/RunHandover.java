package dev.penstock.actors.cluster;

import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;

/**
 * Runs on their way from the threads that open them to the actor that keeps them. An actor that
 * stops gets no more messages: a run that nobody took would stay locked by this process, which
 * could then never take it up again. Safe for any thread.
 */
final class RunHandover implements AutoCloseable {
    private final Set<ClusterRun> onTheirWay = Collections.newSetFromMap(new IdentityHashMap<>());
    private boolean closed;

    /**
     * Notes a run that is now open, and returns it.
     *
     * @throws RunRefusedException if nobody takes runs any more; the run is then closed
     */
    ClusterRun opened(ClusterRun run) {
        synchronized (this) {
            if (!closed) {
                onTheirWay.add(run);
                return run;
            }
        }
        run.close();
        throw new RunRefusedException("this seed no longer keeps runs: another does, or it leaves");
    }

    /** Whoever keeps a run closes it from now on. */
    synchronized void taken(ClusterRun run) {
        onTheirWay.remove(run);
    }

    /** Closes the runs that nobody took, now and later. */
    @Override
    public void close() {
        List<ClusterRun> left;
        synchronized (this) {
            closed = true;
            left = List.copyOf(onTheirWay);
            onTheirWay.clear();
        }
        left.forEach(ClusterRun::close);
    }
}
