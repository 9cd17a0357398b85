package dev.penstock.schedules.simulate.churn;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Who came and who went, and when. The same trace is replayed under every rule: who is preempted
 * does not depend on where it works.
 *
 * @param stages stages of the pipeline
 * @param homes entry p is the stage that peer p is told to join; the first {@code atStart} peers
 *     are there from the start
 * @param atStart peers at time 0
 * @param events in order of time
 * @param seconds when the trace ends
 */
public record ChurnTrace(
        int stages, List<Integer> homes, int atStart, List<Event> events, double seconds) {
    /**
     * A peer comes, or goes for good.
     *
     * @param joins whether it comes
     */
    public record Event(double seconds, int peer, boolean joins) {}

    public ChurnTrace {
        homes = List.copyOf(homes);
        events = List.copyOf(events);
    }

    /**
     * Draws a trace. Peers at the start are dealt to the stages in turn; a stage is drawn for every
     * later one.
     */
    public static ChurnTrace of(Churn churn, long seed) {
        var draws = new Draws(seed);
        var homes = new ArrayList<Integer>();
        IntStream.range(0, churn.peers()).forEach(peer -> homes.add(peer % churn.stages()));
        var living = new ArrayList<Integer>();
        IntStream.range(0, churn.peers()).forEach(living::add);
        var events = new ArrayList<Event>();
        double mean = churn.meanLifeSeconds() / churn.peers();
        double goes = draws.exponential(mean);
        double comes = draws.exponential(mean);
        while (Math.min(goes, comes) < churn.seconds()) {
            if (comes <= goes) {
                events.add(new Event(comes, homes.size(), true));
                living.add(homes.size());
                homes.add(draws.below(churn.stages()));
                comes += draws.exponential(mean);
            } else {
                if (!living.isEmpty()) {
                    int at = draws.below(living.size());
                    events.add(new Event(goes, living.get(at), false));
                    living.set(at, living.getLast());
                    living.removeLast();
                }
                goes += draws.exponential(mean);
            }
        }
        return new ChurnTrace(churn.stages(), homes, churn.peers(), events, churn.seconds());
    }
}
