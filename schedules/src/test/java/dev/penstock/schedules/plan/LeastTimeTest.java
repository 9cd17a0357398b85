package dev.penstock.schedules.plan;

import static dev.penstock.schedules.plan.CountingHardware.BLOCK_PARAMETERS;
import static dev.penstock.schedules.plan.CountingHardware.EMBEDDING_PARAMETERS;
import static dev.penstock.schedules.plan.CountingHardware.HEAD_PARAMETERS;
import static dev.penstock.schedules.plan.CountingHardware.MODEL;
import static dev.penstock.schedules.plan.CountingHardware.blockForward;
import static dev.penstock.schedules.plan.CountingHardware.blockInput;
import static dev.penstock.schedules.plan.CountingHardware.blockWeight;
import static dev.penstock.schedules.plan.CountingHardware.embedding;
import static dev.penstock.schedules.plan.CountingHardware.head;
import static dev.penstock.schedules.plan.CountingHardware.hop;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.schedules.plan.work.DeviceSpec;
import dev.penstock.schedules.plan.work.Hardware;
import dev.penstock.schedules.plan.work.Layout;
import dev.penstock.schedules.plan.work.LayoutHardware;
import dev.penstock.schedules.plan.work.Link;
import dev.penstock.schedules.plan.work.ModelShape;
import dev.penstock.schedules.plan.work.NodeGroup;
import dev.penstock.schedules.plan.work.PlanRequest;
import dev.penstock.schedules.plan.work.ZeroStage;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.Test;

/** Where an order reaches the bound, the bound is known by hand and by simulation. */
class LeastTimeTest {
    private static final List<Integer> WHOLE = List.of(20);
    private static final long F = blockForward(20, 10.5);
    private static final long I = blockInput(20, 10.5);
    private static final long W = blockWeight(20);

    /** Optimizer: 32 bytes of each parameter; the tied matrix is summed between two nodes. */
    private static final long TIED = 2 * (310 * 4 / 2 * 2 + 7);

    private static final long FIRST_TAIL = 32 * (BLOCK_PARAMETERS + EMBEDDING_PARAMETERS) + TIED;

    private static void assertReached(Candidate candidate, long byHand) {
        assertThat(candidate.leastNanos()).isEqualTo(byHand);
        assertThat(new Prover().prove(candidate))
                .asInstanceOf(InstanceOfAssertFactories.type(Prover.Verdict.Proved.class))
                .extracting(proved -> proved.plan().stepNanos())
                .isEqualTo(byHand);
    }

    /** Down and up again through 3 ranks with 1, 2 and 1 blocks, then rank 0's tail. */
    @Test
    void oneMicroBatchGoesDownAndUp() {
        long once = 4 * (F + I + W) + 2 * embedding(20) + 3 * head(20) + 4 * hop(20) + FIRST_TAIL;

        assertReached(CountingHardware.candidate("1f1b", false, 1, WHOLE, List.of(1, 2, 1)), once);
    }

    /** The ranks' computing time until the last gradient has arrived, and the longest tail. */
    @Test
    void aPlanSaysWhatItsRanksComputeAndWhatIsBubble() {
        Candidate candidate = CountingHardware.candidate("1f1b", false, 1, WHOLE, List.of(1, 2, 1));
        long computed = 4 * (F + I + W) + 2 * embedding(20) + 3 * head(20);
        double bubble = 1 - computed / (3.0 * (computed + 4 * hop(20)));

        assertThat(new Prover().prove(candidate))
                .asInstanceOf(InstanceOfAssertFactories.type(Prover.Verdict.Proved.class))
                .satisfies(
                        proved -> {
                            Plan plan = proved.plan();
                            assertThat(plan.busyNanos()).isEqualTo(2 * (F + I + W));
                            assertThat(plan.tailNanos()).isEqualTo(32 * 2 * BLOCK_PARAMETERS);
                            assertThat(plan.bubbleShare()).isCloseTo(bubble, within(1e-9));
                        });
    }

    @Test
    void oneRankIsNeverIdle() {
        long each = 4 * (F + I + W) + 2 * embedding(20) + 3 * head(20);
        long tail = 32 * MODEL.parameters();

        for (int microBatches = 1; microBatches <= 4; microBatches++) {
            assertReached(
                    CountingHardware.candidate("1f1b", false, microBatches, WHOLE, List.of(4)),
                    microBatches * each + tail);
            assertReached(
                    CountingHardware.candidate("zb-h1", true, microBatches, WHOLE, List.of(4)),
                    microBatches * each + tail);
        }
    }

    /**
     * Rank 1 has two blocks and the head, rank 0 one block: rank 1 waits for the first slice and
     * never again; at the end rank 0 has only the first slice's gradient left.
     *
     * <pre>
     * rank 0 | F0 F1                              B1     B0
     * rank 1 |    F0      F1      B1       B0
     * </pre>
     */
    @Test
    void theBusiestRankWaitsForTheFirstSliceAndItsGradientGoesHome() {
        List<Integer> lengths = List.of(12, 8);
        long first = 2 * blockForward(12, 6.5) + head(12);
        long second = 2 * blockForward(8, 16.5) + head(8);
        long back = 2 * (blockInput(12, 6.5) + blockWeight(12)) + 2 * head(12);
        long secondBack = 2 * (blockInput(8, 16.5) + blockWeight(8)) + 2 * head(8);
        long home = blockInput(12, 6.5) + blockWeight(12) + embedding(12);
        long homeOfSecond = blockInput(8, 16.5) + blockWeight(8) + embedding(8);
        long byHand =
                blockForward(12, 6.5)
                        + embedding(12)
                        + hop(12)
                        + (first + second + back + secondBack)
                        + Math.min(home + hop(12), homeOfSecond + hop(8))
                        + FIRST_TAIL;

        Candidate candidate =
                CountingHardware.candidate("seq1f1b", false, 1, lengths, List.of(1, 2));

        assertThat(candidate.leastNanos()).isEqualTo(byHand);
        assertThat(new Prover().prove(candidate))
                .asInstanceOf(InstanceOfAssertFactories.type(Prover.Verdict.Proved.class))
                .extracting(proved -> proved.plan().stepNanos())
                .isEqualTo(byHand - homeOfSecond - hop(8) + home + hop(12));
    }

    /** The last rank's weights and tail take longer than the way back to rank 0. */
    @Test
    void withSplitBackwardsTheLastRankMayEndLast() {
        long lastTail = 32 * (3 * BLOCK_PARAMETERS + HEAD_PARAMETERS) + TIED;
        long byHand = F + embedding(20) + hop(20) + 3 * (F + I + W) + 3 * head(20) + lastTail;

        assertReached(CountingHardware.candidate("zb-h1", true, 1, WHOLE, List.of(1, 3)), byHand);
    }

    /** Layouts that cut every rank as it comes, on devices, nodes and links of any speed. */
    @Test
    void noOrderOfRanksWithDifferentShardsIsFaster() {
        var random = new Random(31);
        List<ScheduleFamily> families =
                ScheduleFamily.all(
                        List.of("gpipe", "1f1b", "zb-h1", "interleaved-1f1b", "zb-v"),
                        List.of(1, 2));
        int proved = 0;
        for (int round = 0; round < 60; round++) {
            List<Integer> shards =
                    Stream.generate(() -> 1 << random.nextInt(3))
                            .limit(1 + random.nextInt(3))
                            .toList();
            Layout layout = Layout.ofShards(shards, 1 + random.nextInt(2));
            Hardware cluster = unequal(random, layout.devices());
            int microBatches = 1 + random.nextInt(4);
            var request =
                    new PlanRequest(
                            new ModelShape(4, 10, 2, 31, 20, false),
                            CountingHardware.BYTES,
                            cluster,
                            layout.data() * microBatches);
            var hardware = LayoutHardware.of(cluster, layout);
            ScheduleFamily family = families.get(random.nextInt(families.size()));
            var split =
                    new Split(
                            hardware,
                            microBatches,
                            1,
                            WHOLE,
                            family.chunks().getLast(),
                            family.vShaped(),
                            random.nextBoolean());
            var candidates = SplitCandidates.of(request, split, family);
            List<Candidate> fitting = new ArrayList<>();
            candidates.each(family, List.of(ZeroStage.values()), fitting::add, _ -> {});
            for (Candidate candidate : fitting) {
                if (new Prover().prove(candidate) instanceof Prover.Verdict.Proved(Plan plan)) {
                    proved++;
                    assertThat(plan.stepNanos())
                            .as("%s on %s", plan.choice().describe(), cluster)
                            .isGreaterThanOrEqualTo(candidate.leastNanos())
                            .isGreaterThanOrEqualTo(candidates.leastNanos())
                            .isGreaterThanOrEqualTo(LeastTime.ofLayout(request, hardware));
                }
            }
        }
        assertThat(proved).isGreaterThan(60);
    }

    private static Hardware unequal(Random random, int devices) {
        List<NodeGroup> groups = new ArrayList<>();
        for (int left = devices; left > 0; ) {
            int count = 1 + random.nextInt(left);
            groups.add(
                    new NodeGroup(
                            "group " + groups.size(),
                            1,
                            count,
                            new DeviceSpec(
                                    1L << 30, (1 + random.nextInt(9)) * 1e9, 1, speed(random)),
                            new Link(random.nextInt(9), speed(random))));
            left -= count;
        }
        return new Hardware("unequal", groups, new Link(random.nextInt(9), speed(random)));
    }

    private static double speed(Random random) {
        return 1e8 * Math.pow(100, random.nextDouble());
    }

    /** 3 x 4 x 20 tokens x (24 h^2 + 4 h x 10.5), and 6 x 31 x h for the words of each. */
    private static final double FLOPS = 20.0 * (12 * (2_400 + 420) + 6 * 31 * 10);

    private static long ofLayout(Hardware cluster, Layout layout, int batch) {
        return LeastTime.ofLayout(
                CountingHardware.request(cluster, batch), LayoutHardware.of(cluster, layout));
    }

    @Test
    void aLayoutTakesAllFlopsOfAReplicasSequencesAtTheSpeedOfItsDevices() {
        assertThat(ofLayout(CountingHardware.cluster(1, 1), new Layout(1, 1, 1), 6))
                .isCloseTo(Math.round(6 * FLOPS), within(8L));
        assertThat(ofLayout(CountingHardware.cluster(6, 1), new Layout(2, 1, 3), 6))
                .isCloseTo(Math.round(2 * FLOPS / 2), within(2L));
    }

    /** Four all-reduces of 20 x h x 3 bytes a block, each 2 x 1/2 of them; speeds 1 and 3. */
    @Test
    void shardsShareTheFlopsAndJoinTheirSumsWhereTheirLinksAreFastest() {
        var fast = new DeviceSpec(1L << 30, 3e9, 1, 1e9);
        var cluster =
                new Hardware(
                        "unequal",
                        List.of(
                                new NodeGroup(
                                        "slow",
                                        1,
                                        2,
                                        CountingHardware.DEVICE,
                                        CountingHardware.INSIDE),
                                new NodeGroup("fast", 1, 2, fast, new Link(3, 0.25e9))),
                        CountingHardware.NETWORK);

        long least = ofLayout(cluster, new Layout(2, 2, 1), 1);

        double joined = 4 * 4 * 600;
        assertThat(least).isCloseTo(Math.round(FLOPS / 2 / 4 + joined / 4), within(2L));
    }
}
