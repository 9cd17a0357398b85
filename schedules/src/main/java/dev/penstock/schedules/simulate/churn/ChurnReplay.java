package dev.penstock.schedules.simulate.churn;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/**
 * Replays a trace under a rule. All peers are equally fast, and moving takes no time. What a
 * pipeline does at a time is what its stage with the fewest peers does; the most that it could do
 * is a stage's equal share of all peers.
 */
public final class ChurnReplay {
    private final ChurnTrace trace;
    private final RebalancingRule rule;
    private final int[] peersOf;

    /** Where a living peer works. */
    private final Map<Integer, Integer> stageOf = new HashMap<>();

    private double now;
    private double done;
    private double optimum;
    private double whole;
    private int moves;

    private ChurnReplay(ChurnTrace trace, RebalancingRule rule) {
        this.trace = trace;
        this.rule = rule;
        this.peersOf = new int[trace.stages()];
    }

    /**
     * What came of it.
     *
     * @param shareOfOptimum what was done, of what all peers could do if stages could share one
     * @param shareOfWhole what was done, of what could be done if every peer works for one stage
     * @param moves how often a peer went to another stage
     */
    public record Outcome(double shareOfOptimum, double shareOfWhole, int moves) {}

    /** Replays a trace from its start to its end. */
    public static Outcome of(ChurnTrace trace, RebalancingRule rule) {
        return new ChurnReplay(trace, rule).run();
    }

    private Outcome run() {
        for (int peer = 0; peer < trace.atStart(); peer++) {
            settle(peer, trace.homes().get(peer));
        }
        double every = rule.everySeconds().orElse(Double.POSITIVE_INFINITY);
        long rounds = 1;
        for (ChurnTrace.Event event : trace.events()) {
            while (rounds * every <= event.seconds()) {
                passTo(rounds++ * every);
                move();
            }
            passTo(event.seconds());
            happens(event);
        }
        while (rounds * every < trace.seconds()) {
            passTo(rounds++ * every);
            move();
        }
        passTo(trace.seconds());
        return new Outcome(done / optimum, done / whole, moves);
    }

    private void passTo(double seconds) {
        double passed = seconds - now;
        int all = stageOf.size();
        done += passed * Arrays.stream(peersOf).min().orElse(0);
        optimum += passed * all / peersOf.length;
        int each = all / peersOf.length;
        whole += passed * each;
        now = seconds;
    }

    private void happens(ChurnTrace.Event event) {
        if (event.joins()) {
            settle(
                    event.peer(),
                    rule.joining() == RebalancingRule.Joining.LEAST
                            ? least()
                            : trace.homes().get(event.peer()));
        } else {
            Integer stage = stageOf.remove(event.peer());
            if (stage != null) {
                peersOf[stage]--;
            }
        }
    }

    private void settle(int peer, int stage) {
        stageOf.put(peer, stage);
        peersOf[stage]++;
    }

    private void move() {
        int from = most();
        int to = least();
        if (peersOf[from] - peersOf[to] < 2) {
            return;
        }
        int mover =
                stageOf.entrySet().stream()
                        .filter(peer -> peer.getValue() == from)
                        .mapToInt(Map.Entry::getKey)
                        .min()
                        .orElseThrow();
        peersOf[from]--;
        settle(mover, to);
        moves++;
    }

    private int least() {
        int least = 0;
        for (int stage = 1; stage < peersOf.length; stage++) {
            least = peersOf[stage] < peersOf[least] ? stage : least;
        }
        return least;
    }

    private int most() {
        int most = 0;
        for (int stage = 1; stage < peersOf.length; stage++) {
            most = peersOf[stage] > peersOf[most] ? stage : most;
        }
        return most;
    }
}
