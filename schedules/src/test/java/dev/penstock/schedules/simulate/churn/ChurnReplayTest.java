package dev.penstock.schedules.simulate.churn;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.schedules.simulate.churn.ChurnTrace.Event;
import dev.penstock.schedules.simulate.churn.RebalancingRule.Joining;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class ChurnReplayTest {
    /**
     * Stage 0 has peers 0 and 2, stage 1 has 1 and 3. Peer 0 goes at 10 s; peer 4, drawn for stage
     * 1, comes at 30 s; it ends at 100 s.
     *
     * <pre>
     * all peers     4 to 10 s, 3 to 30 s, 4 to 100 s: optimum 2 x 10 + 1.5 x 20 + 2 x 70 = 190
     * whole peers                                             2 x 10 + 1 x 20 + 2 x 70 = 180
     * nobody moves  stages have 2 2, 1 2, 1 3:                2 x 10 + 1 x 20 + 1 x 70 = 110
     * to the least  stages have 2 2, 1 2, 2 2:                2 x 10 + 1 x 20 + 2 x 70 = 180
     * every 25 s    1 2 at 25 s is level; 1 3 becomes 2 2 at 50 s: 20 + 20 + 20 + 100 = 160
     * </pre>
     */
    private static final ChurnTrace BY_HAND =
            new ChurnTrace(
                    2,
                    List.of(0, 1, 0, 1, 1),
                    4,
                    List.of(new Event(10, 0, false), new Event(30, 4, true)),
                    100);

    private static void share(RebalancingRule rule, double done, int moves) {
        ChurnReplay.Outcome outcome = ChurnReplay.of(BY_HAND, rule);

        assertThat(outcome.shareOfOptimum()).isCloseTo(done / 190, within(1e-12));
        assertThat(outcome.shareOfWhole()).isCloseTo(done / 180, within(1e-12));
        assertThat(outcome.moves()).isEqualTo(moves);
    }

    @Test
    void aTinyTraceGivesWhatIsWorkedOutByHand() {
        share(RebalancingRule.never(Joining.DRAWN), 110, 0);
        share(RebalancingRule.never(Joining.LEAST), 180, 0);
        share(RebalancingRule.every(Joining.DRAWN, 25), 160, 1);
        share(RebalancingRule.every(Joining.DRAWN, 50), 160, 1);
        share(RebalancingRule.every(Joining.LEAST, 25), 180, 0);
    }

    @Test
    void aPeerThatMovedGoesFromWhereItIs() {
        // peer 1, the lowest of stage 1, moves at 50 s and is gone at 60 s: 1 2 from then on
        var trace =
                new ChurnTrace(
                        2,
                        BY_HAND.homes(),
                        4,
                        List.of(
                                new Event(10, 0, false),
                                new Event(30, 4, true),
                                new Event(60, 1, false)),
                        100);

        ChurnReplay.Outcome outcome =
                ChurnReplay.of(trace, RebalancingRule.every(Joining.DRAWN, 50));

        assertThat(outcome.shareOfOptimum())
                .isCloseTo((20 + 20 + 20 + 20 + 40) / (20 + 30 + 60 + 60.0), within(1e-12));
    }

    /** SWARM's 32 stages and 32 hours, 400 peers that live for 24 hours. */
    @ParameterizedTest
    @EnumSource(Joining.class)
    void theMoreOftenPeersMoveTheCloserToTheOptimum(Joining joining) {
        var churn = new Churn(32, 400, 24 * 3600, 32 * 3600);
        for (long seed = 0; seed < 10; seed++) {
            ChurnTrace trace = ChurnTrace.of(churn, seed);
            double never = ChurnReplay.of(trace, RebalancingRule.never(joining)).shareOfOptimum();
            double slow =
                    ChurnReplay.of(trace, RebalancingRule.every(joining, 300)).shareOfOptimum();
            double fast =
                    ChurnReplay.of(trace, RebalancingRule.every(joining, 60)).shareOfOptimum();

            assertThat(never).isLessThan(slow);
            assertThat(slow).isLessThan(fast);
            assertThat(fast).isLessThan(1);
        }
    }

    @Test
    void aTraceHasAsManyComingAndGoingAsItsRateSays() {
        var churn = new Churn(8, 1000, 3600, 7200);
        ChurnTrace trace = ChurnTrace.of(churn, 1);
        long joins = trace.events().stream().filter(Event::joins).count();

        // 2000 of each are expected, give or take 4.5 times the root of that
        assertThat(joins).isBetween(1800L, 2200L);
        assertThat(trace.events().size() - joins).isBetween(1800L, 2200L);
        assertThat(trace.events())
                .isSortedAccordingTo((a, b) -> Double.compare(a.seconds(), b.seconds()));
        assertThat(trace).isEqualTo(ChurnTrace.of(churn, 1)).isNotEqualTo(ChurnTrace.of(churn, 2));
    }

    @Test
    void whatMakesNoSenseIsRefused() {
        assertThatThrownBy(() -> new Churn(4, 3, 1, 1)).hasMessageContaining("a peer for each");
        assertThatThrownBy(() -> RebalancingRule.every(Joining.LEAST, 0))
                .hasMessageContaining("every so many seconds");
    }
}
