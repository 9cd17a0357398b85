package dev.penstock.schedules.plan.work;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.plan.Clusters;
import dev.penstock.schedules.plan.CountingHardware;
import dev.penstock.schedules.plan.PtdpFormulas;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

class HardwareCostsTest {
    private static final ModelShape TRILLION =
            new ModelShape(128, 25_600, 160, 51_200, 2_048, true);
    private static final Hardware CLUSTER = Clusters.a100(64);
    private static final double RATE = 312e12 * 0.55;

    private static PlanChoice choice(int tensor, List<Integer> slices, boolean recompute) {
        return new PlanChoice(
                new Layout(64, tensor, 1), ZeroStage.NONE, "1f1b", 1, 8, slices, recompute);
    }

    private static HardwareCosts costs(PlanChoice choice) {
        var request = new PlanRequest(TRILLION, TrainingBytes.MIXED, CLUSTER, 8);
        List<Integer> partition = Collections.nCopies(64, 2);
        return HardwareCosts.of(request, choice, partition, Placement.loop(64, 1));
    }

    /** Forward and backward of one sequence on all stages. */
    private static double computed(PlanChoice choice) {
        HardwareCosts costs = costs(choice);
        double nanos = 0;
        for (int stage = 0; stage < 64; stage++) {
            for (int slice = 0; slice < choice.slices(); slice++) {
                var unit = new WorkUnit(stage, 0, slice);
                nanos += costs.nanos(stage, 0, new Op.Forward(unit));
                nanos += costs.nanos(stage, 0, new Op.Backward(unit));
            }
        }
        return nanos;
    }

    /**
     * A pair takes what its ops take without their sums, if they find enough to hide behind; with
     * one shard, ZeRO or recomputed blocks it takes what they take one after the other.
     */
    @Test
    void aPairHidesItsSumsWhereStagesCanRunBothOps() {
        var unit = new WorkUnit(1, 1, 0);
        var forward = new Op.Forward(new WorkUnit(1, 2, 0));
        List<Integer> whole = List.of(2_048);
        for (Op.Compute partner :
                List.of(new Op.Backward(unit), new Op.BackwardWeight(unit), new Op.Forward(unit))) {
            var pair = new Op.Overlapped(forward, partner);
            HardwareCosts alone = costs(choice(1, whole, false));
            HardwareCosts eight = costs(choice(8, whole, false));
            HardwareCosts again = costs(choice(8, whole, true));
            int sums = partner instanceof Op.BackwardWeight ? 1 : 2;
            double sum =
                    2
                            * 2
                            * Collectives.allReduceNanos(
                                    Clusters.a100(64).groups().getFirst().inside(),
                                    8,
                                    2.0 * 2_048 * 25_600);

            assertThat(alone.nanos(1, 0, pair)).isEqualTo(apart(alone, pair));
            assertThat(again.nanos(1, 0, pair)).isEqualTo(apart(again, pair));
            assertThat(eight.oneOpAtATime().nanos(1, 0, pair)).isEqualTo(apart(eight, pair));
            assertThat((double) apart(eight, pair) - eight.nanos(1, 0, pair))
                    .isCloseTo(sums * sum, within(4.0));
        }
    }

    private static long apart(HardwareCosts costs, Op.Overlapped pair) {
        return costs.nanos(1, 0, pair.forward()) + costs.nanos(1, 0, pair.partner());
    }

    /** Where stages have different numbers of shards, each shard gets all that it needs. */
    @Test
    void aSenderSendsACopyToEachShardOfTheNextStage() {
        var layout = Layout.ofShards(List.of(1, 2), 1);
        Hardware cluster = CountingHardware.cluster(3, 1);
        HardwareCosts costs =
                HardwareCosts.of(
                        CountingHardware.request(cluster, 1),
                        new PlanChoice(layout, ZeroStage.NONE, "1f1b", 1, 1, List.of(20), false),
                        List.of(2, 2),
                        Placement.loop(2, 1));
        long rows = 20 * 10 * 3;

        assertThat(costs.bytes(new Channel(0, 1), new WorkUnit(1, 0, 0))).isEqualTo(2 * rows);
        assertThat(costs.bytes(new Channel(1, 0), new WorkUnit(0, 0, 0))).isEqualTo(rows);
        assertThat(costs.hopNanos(0, 0)).isEqualTo(7 + 2 * (2 * rows));
        assertThat(costs.returnNanos(0, 0)).isEqualTo(7 + 2 * rows);
    }

    /**
     * In room for one unit the second forward waits until the first unit has left, and the first
     * backward until it is back: nothing is hidden.
     *
     * <pre>
     *   computes  F0 ....... F1 B1 ....... B0
     *   moves        out           back
     * </pre>
     */
    @Test
    void activationsTakeTheirTimeToTheHostAndBack() {
        Schedule order =
                ScheduleText.parse(
                        """
                        ranks: 1
                        micro-batches: 2
                        rank 0: 0F0 0OFFLOAD0 0F1 0B1 0RELOAD0 0B0
                        """);
        DeviceSpec device = new DeviceSpec(1L << 30, 2e9, 0.5, 1e9, 0.25e9, 1e9);
        var group = new NodeGroup("box", 1, 1, device, CountingHardware.INSIDE);
        var cluster = new Hardware("boxes", List.of(group), CountingHardware.NETWORK);
        HardwareCosts costs =
                HardwareCosts.of(
                        CountingHardware.request(cluster, 2),
                        new PlanChoice(
                                new Layout(1, 1, 1),
                                ZeroStage.NONE,
                                "gpipe",
                                1,
                                2,
                                List.of(20),
                                false),
                        List.of(4),
                        Placement.loop(1, 1));
        // 17 numbers of 3 bytes in each of 10 columns, in 4 blocks; and the input of the last norm
        long bytes = 3 * 20 * 10 * (4 * 17 + 1);
        var unit = new WorkUnit(0, 0, 0);
        long computing =
                2 * costs.nanos(0, 0, new Op.Forward(unit))
                        + 2 * costs.nanos(0, 0, new Op.Backward(unit));

        long makespan = ScheduleSimulator.simulate(order, costs).makespanNanos();

        assertThat(makespan).isEqualTo(computing + 2 * 4 * bytes);
    }

    @Test
    void allStagesTogetherComputeThePapersFlops() {
        // ours counts the causal half of attention, and does not compute the head a second time
        double paper = PtdpFormulas.flopsPerIteration(1, 128, 25_600, 51_200, 2_048);

        double ours = computed(choice(1, List.of(2_048), true)) / 1e9 * RATE;

        assertThat(ours).isCloseTo(paper, within(0.01 * paper));
        assertThat(computed(choice(1, List.of(2_048), false)) / 1e9 * RATE)
                .isCloseTo(0.75 * paper, within(0.01 * paper));
    }

    @Test
    void slicesComputeTheSameFlopsUntilTheFloorIsReached() {
        double whole = computed(choice(1, List.of(2_048), false));

        double eight = computed(choice(1, Collections.nCopies(8, 256), false));
        double many = computed(choice(1, Collections.nCopies(2_048, 1), false));

        assertThat(eight).isCloseTo(whole, within(1e-3 * whole));
        assertThat(many).isGreaterThan(10 * whole);
    }

    @Test
    void aFullBackwardTakesAsLongAsItsParts() {
        HardwareCosts costs = costs(choice(8, List.of(1_024, 1_024), true));
        for (int slice = 0; slice < 2; slice++) {
            var unit = new WorkUnit(5, 3, slice);

            long input = costs.nanos(5, 0, new Op.BackwardInput(unit));
            long weight = costs.nanos(5, 0, new Op.BackwardWeight(unit));

            assertThat(costs.nanos(5, 0, new Op.Backward(unit))).isEqualTo(input + weight);
            assertThat(input).isGreaterThan(2 * weight);
        }
    }

    @Test
    void tensorShardsDivideTheWorkAndJoinTheirSums() {
        var unit = new Op.Forward(new WorkUnit(5, 0, 0));
        double alone = costs(choice(1, List.of(2_048), false)).nanos(5, 0, unit);

        double shared = costs(choice(8, List.of(2_048), false)).nanos(5, 0, unit);

        // two all-reduces a block: PTD-P's traffic both ways is 8bsh(t-1)/t, half of it forward
        double bytes = PtdpFormulas.tensorParallelTraffic(1, 2_048, 25_600, 8) / 2 * 2;
        double joined = 2 * (bytes / 250e9 * 1e9 + 2 * 2 * 3 * 3_000);
        assertThat(shared).isCloseTo(alone / 8 + joined, within(1e-6 * shared));
    }

    @Test
    void aHopTakesItsPartOfTheTensorOverItsShareOfTheNetwork() {
        HardwareCosts costs = costs(choice(8, List.of(2_048), false));
        var channel = new Channel(5, 6);

        assertThat(costs.latencyNanos(channel)).isEqualTo(5_000);
        double bytes = 2 * PtdpFormulas.scatteredHopTraffic(1, 2_048, 25_600, 8);
        assertThat((double) costs.occupancyNanos(channel, new WorkUnit(6, 0, 0)))
                .isCloseTo(bytes / (200e9 / 8) * 1e9, within(1.0));
    }

    @Test
    void blocksKeepWhatThePaperCounts() {
        // s b h (10 + 24/t)
        assertThat(UnitBytes.kept(TRILLION, TrainingBytes.MIXED, 1, 2_048))
                .isEqualTo(34L * 2_048 * 25_600);
        assertThat(UnitBytes.kept(TRILLION, TrainingBytes.MIXED, 8, 2_048))
                .isEqualTo(13L * 2_048 * 25_600);
        assertThat(UnitBytes.recomputed(TRILLION, TrainingBytes.MIXED, 8, 2_048, false))
                .isEqualTo(2L * 2_048 * 25_600);
    }
}
