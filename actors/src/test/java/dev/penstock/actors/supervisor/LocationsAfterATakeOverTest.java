package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.dataplane.PeerAddress;
import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.journal.JournalledRun;
import dev.penstock.actors.node.HostedRank;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.node.TestNodes;
import dev.penstock.actors.rank.LocationDigests;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.rank.RankLocation;
import dev.penstock.actors.rank.RankLocations;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.RunSteps;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/**
 * How much a supervisor tells two hundred ranks, of which one has moved, of where all live: as much
 * when it has just taken the run up as when it has had it from the beginning.
 */
class LocationsAfterATakeOverTest {
    private static final int RANKS = 200;
    private static final int MOVED = 70;

    private final RunPlan plan = plan();
    private final RecoveryPolicy policy = RecoveryPolicy.DEFAULT;

    /** What each rank has put together from what it was told. */
    private final Map<Integer, RankLocations> known = new HashMap<>();

    private final List<Integer> resumed = new ArrayList<>();
    private RunCoordinator coordinator = TestCoordinators.begin(plan, policy, 1);
    private long now = 1;

    /** How many locations were told in all. */
    private int told;

    LocationsAfterATakeOverTest() {
        for (int rank = 0; rank < RANKS; rank++) {
            NodeInfo node = node(rank, rank);
            take(() -> coordinator.onNode(node, ++now));
        }
        for (int rank = 0; rank < RANKS; rank++) {
            opens(rank, 1);
        }
        assertThat(told).as("at birth, all").isEqualTo(RANKS * RANKS);
        told = 0;
    }

    @Test
    void anOrdinaryRecoveryTellsEachOfTheOneThatHasMoved() {
        take(() -> coordinator.onNodeDied(node(MOVED, MOVED).process(), false, "killed", ++now));

        othersPrepareAndTheOneMoves();

        assertThat(told).isEqualTo(RANKS - 1 + RANKS);
        assertAllKnowWhereItWent();
    }

    @Test
    void aTakeOverTellsNoMore() {
        isTakenUp();
        othersAreFound();
        take(() -> coordinator.onNowhere(MOVED, ++now));

        othersPrepareAndTheOneMoves();

        assertThat(told).isEqualTo(RANKS - 1 + RANKS);
        assertAllKnowWhereItWent();
    }

    @Test
    void aTakeOverAfterWhichNobodyHasMovedTellsNothing() {
        isTakenUp();
        othersAreFound();
        found(MOVED);

        IntStream.range(0, RANKS).forEach(this::prepares);

        assertThat(resumed).hasSize(RANKS);
        assertThat(told).isZero();
    }

    /** What it holds when its order comes is what it said, or what the order says. */
    @Test
    void ranksThatAnswerTwiceAreToldTheSame() {
        isTakenUp();
        othersAreFound();
        take(() -> coordinator.onNowhere(MOVED, ++now));
        others().forEach(this::prepares);

        othersPrepareAndTheOneMoves();
        prepares(0); // late: it has resumed

        assertThat(told).isEqualTo(RANKS - 1 + RANKS);
        assertAllKnowWhereItWent();
    }

    private void othersPrepareAndTheOneMoves() {
        others().forEach(this::prepares);
        assertThat(resumed).as("to whom would they open links?").isEmpty();
        take(() -> coordinator.onNode(node(RANKS, MOVED), ++now));
        assertThat(resumed).hasSize(RANKS - 1);
    }

    private void assertAllKnowWhereItWent() {
        List<RankLocation> expected =
                IntStream.range(0, RANKS)
                        .mapToObj(
                                rank ->
                                        new RankLocation(
                                                rank,
                                                rank,
                                                -1,
                                                node(rank == MOVED ? RANKS : rank, rank).address()))
                        .toList();
        assertThat(known.values())
                .hasSize(RANKS)
                .allSatisfy(held -> assertThat(held.byRank()).isEqualTo(expected));
    }

    // ---- what happens ---------------------------------------------------------------------------

    private void isTakenUp() {
        var began = new JournalRecord.Began(plan.runId(), plan.hash(), RANKS, 1, 0);
        JournalledRun run = JournalledRun.of(List.of(began)).orElseThrow();
        coordinator = TestCoordinators.takeUpNamed(run, plan, policy, ++now);
    }

    private static List<Integer> others() {
        return IntStream.range(0, RANKS).filter(rank -> rank != MOVED).boxed().toList();
    }

    private void othersAreFound() {
        others().forEach(this::found);
    }

    private void found(int rank) {
        var hosted = List.of(new HostedRank(rank, 1));
        take(() -> coordinator.onNode(node(rank, rank), 1, hosted, ++now));
    }

    private void opens(int rank, int epoch) {
        take(() -> coordinator.onHosted(rank, epoch, ++now));
        hears(new RankEvent.Opened(rank, epoch, "device", "kernels"));
    }

    private void prepares(int rank) {
        var state = new RankEvent.HeldState(rank, 0, -1);
        LocationDigests digests = known.getOrDefault(rank, RankLocations.NONE).digests();
        hears(new RankEvent.Prepared(rank, 2, state, List.of(), digests, ""));
    }

    private void hears(RankEvent event) {
        take(() -> coordinator.onRankEvent(event, ++now));
    }

    /** What makes the coordinator act. */
    private interface Cause {
        List<Effect> act();
    }

    private void take(Cause cause) {
        for (Effect effect : cause.act()) {
            if (effect instanceof Effect.HostRank(_, var birth)) {
                told += birth.links().changed().size();
                known.put(birth.rank(), RankLocations.NONE.with(birth.links().changed()));
            } else if (effect instanceof Effect.TellRank(int rank, RankCommand.Resume order)) {
                told += order.links().changed().size();
                known.computeIfPresent(rank, (_, held) -> held.with(order.links().changed()));
                resumed.add(rank);
            }
        }
    }

    private static NodeInfo node(int number, int rank) {
        var address = new PeerAddress("host" + number, "/dev/shm/" + number, "10.0.0.1:" + number);
        return TestNodes.of("n" + number, number, rank, address);
    }

    private static RunPlan plan() {
        var pipeline = new ChainPipeline("1f1b", new ChainStage.Settings(RANKS, 2, 1, false, 0.01));
        pipeline.runSteps = new RunSteps(0, 9, 0, 0, 0, 0);
        return pipeline.plan();
    }
}
