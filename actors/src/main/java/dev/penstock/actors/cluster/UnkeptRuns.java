package dev.penstock.actors.cluster;

import dev.penstock.actors.cluster.ClusterRuns.Unkept;
import dev.penstock.actors.cluster.ClusterRuns.WhyUnkept;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * What a seed knows of the runs that have not ended and that it does not keep, or not yet: whoever
 * asks for one is told, since silence looks like a dead cluster. Safe for any thread.
 */
final class UnkeptRuns implements RunMaker.Finder {
    /** Why a run is not kept, since when, and words about it. */
    private record State(WhyUnkept why, long sinceNanos, String detail) {}

    private final String seed;
    private final RunMaker.Finder next;
    private final Map<String, State> states = new TreeMap<>();
    private boolean looking;
    private long lookingSince;

    /**
     * @param seed this one, for people
     * @param next told the same
     */
    UnkeptRuns(String seed, RunMaker.Finder next) {
        this.seed = seed;
        this.next = next;
    }

    /** Looks for all runs: until the end of it, nobody knows what there is. */
    synchronized void looksForAll(long now) {
        looking = true;
        lookingSince = now;
    }

    /** Has looked: all that have a lock of somebody else's. */
    synchronized void looked(Collection<String> locked, long now) {
        looking = false;
        states.values()
                .removeIf(state -> state.why() == WhyUnkept.OPENS); // told otherwise, or kept
        var gone = new TreeSet<String>();
        states.forEach(
                (run, state) -> {
                    if (state.why() == WhyUnkept.HELD && !locked.contains(run)) {
                        gone.add(run);
                    }
                });
        states.keySet().removeAll(gone);
        locked.forEach(run -> enter(run, WhyUnkept.HELD, "", now));
    }

    /** It is kept now. */
    synchronized void kept(String run) {
        states.remove(run);
    }

    synchronized boolean isLooking() {
        return looking;
    }

    @Override
    public void opens(String run) {
        synchronized (this) {
            enter(run, WhyUnkept.OPENS, "", System.nanoTime());
        }
        next.opens(run);
    }

    /** Opened, and on its way to the actor that keeps it: said until it is there. */
    @Override
    public void opened(ClusterRun run) {
        next.opened(run);
    }

    @Override
    public void cannotOpen(String run, String reason) {
        synchronized (this) {
            enter(run, WhyUnkept.BROKEN, reason, System.nanoTime());
        }
        next.cannotOpen(run, reason);
    }

    @Override
    public void held(String run, String holder) {
        synchronized (this) {
            enter(run, WhyUnkept.HELD, holder, System.nanoTime());
        }
        next.held(run, holder);
    }

    /** The time counts from when it first was so. */
    private void enter(String run, WhyUnkept why, String detail, long now) {
        State before = states.get(run);
        if (before == null || before.why() != why) {
            states.put(run, new State(why, now, detail));
        } else if (!detail.isEmpty()) {
            states.put(run, new State(why, before.sinceNanos(), detail));
        }
    }

    /** Why a run is not kept; empty if nothing is known of such a run. */
    synchronized Optional<Unkept> why(String run, long now) {
        State state = states.get(run);
        if (state != null) {
            return Optional.of(unkept(run, state, now));
        }
        if (!looking) {
            return Optional.empty();
        }
        return Optional.of(
                new Unkept(
                        run,
                        WhyUnkept.LOOKS,
                        "seed %s has kept the cluster's runs for %d s and still looks for those of the seed before it"
                                .formatted(seed, seconds(lookingSince, now))));
    }

    /** All that are known by name. */
    synchronized List<Unkept> all(long now) {
        return states.entrySet().stream()
                .map(each -> unkept(each.getKey(), each.getValue(), now))
                .toList();
    }

    private Unkept unkept(String run, State state, long now) {
        long seconds = seconds(state.sinceNanos(), now);
        String line =
                switch (state.why()) {
                    case LOOKS -> throw new IllegalStateException("of no run in particular");
                    case OPENS ->
                            "seed %s has been opening %s for %d s: it reads the run's data and checkpoint"
                                    .formatted(seed, run, seconds);
                    case HELD ->
                            "no seed keeps %s: seed %s has found its directory in use%s for %d s and takes it up once it is free; end whoever has it if that does no more than hold it"
                                    .formatted(run, seed, state.detail(), seconds);
                    case BROKEN ->
                            "no seed keeps %s: it has not ended, but seed %s cannot take it up: %s; see that seed's log, and penstock train --resume"
                                    .formatted(run, seed, state.detail());
                };
        return new Unkept(run, state.why(), line);
    }

    private static long seconds(long since, long now) {
        return Duration.ofNanos(now - since).toSeconds();
    }
}
