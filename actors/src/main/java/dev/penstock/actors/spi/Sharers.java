package dev.penstock.actors.spi;

import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.Wiring;
import java.util.List;
import java.util.Optional;

/**
 * With whom a rank exchanges the gradient that one of its stages shares with another. Usually these
 * are two ranks of one replica. Where replicas lack ranks, all that hold a stage have the same sum,
 * so one may give it to several:
 *
 * <pre>
 *   3 replicas, one of which has no rank for the last stage
 *   stage 0     0   1   2           0 and 0 exchange, 2 and 2 exchange,
 *   last stage  0   -   2           and 1 gets what 2 gives
 * </pre>
 *
 * @param giver whose part this rank gets
 * @param receivers who get this rank's part, rising
 */
public record Sharers(int giver, List<Integer> receivers) {
    public Sharers {
        receivers = List.copyOf(receivers);
    }

    /**
     * Returns those of a rank.
     *
     * @param stage that it holds
     * @param other the stage with which that one shares
     */
    public static Sharers of(RunPlan plan, int rank, int stage, int other) {
        Placement placement = plan.training().placement();
        Optional<Wiring> wiring = placement.wiring();
        if (wiring.isEmpty()) {
            int holder = plan.holderOf(other, rank);
            return new Sharers(holder, List.of(holder));
        }
        List<Integer> here = placement.ranksOf(stage);
        List<Integer> there = placement.ranksOf(other);
        return new Sharers(
                giver(wiring.get(), rank, here, there),
                there.stream()
                        .filter(each -> giver(wiring.get(), each, there, here) == rank)
                        .toList());
    }

    /** Who gives to a rank: the one of its replica, or one whose turn it is. */
    private static int giver(Wiring wiring, int rank, List<Integer> its, List<Integer> givers) {
        int peer = wiring.peerOfRank(rank);
        return givers.stream()
                .filter(each -> wiring.peerOfRank(each) == peer)
                .findFirst()
                .orElseGet(() -> givers.get(its.indexOf(rank) % givers.size()));
    }
}
