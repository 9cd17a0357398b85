package dev.penstock.schedules.plan.work;

import static dev.penstock.schedules.plan.CountingHardware.BLOCK_PARAMETERS;
import static dev.penstock.schedules.plan.CountingHardware.HEAD_PARAMETERS;
import static dev.penstock.schedules.plan.CountingHardware.blockForward;
import static dev.penstock.schedules.plan.CountingHardware.blockInput;
import static dev.penstock.schedules.plan.CountingHardware.blockWeight;
import static dev.penstock.schedules.plan.CountingHardware.embedding;
import static dev.penstock.schedules.plan.CountingHardware.head;
import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.plan.CountingHardware;
import java.util.List;
import org.junit.jupiter.api.Test;

/** By hand, on hardware that does a FLOP in a nanosecond. */
class StageTimesTest {
    private static StageTimes times(PipelineWork work, ZeroStage zero) {
        return new StageTimes(work, List.of(1, 2, 1), Placement.loop(3, 1), zero);
    }

    private static void assertTimes(
            StageTimes times, int stage, int slice, long forward, long input, long weight) {
        assertThat(times.forward(stage, slice)).isEqualTo(forward);
        assertThat(times.backwardInput(stage, slice)).isEqualTo(input);
        assertThat(times.backwardWeight(stage, slice)).isEqualTo(weight);
        assertThat(times.backward(stage, slice)).isEqualTo(input + weight);
    }

    /** A token attends to itself and to those before it: 10.5 of 20 on average. */
    @Test
    void stagesComputeTheirBlocksTheFirstTheEmbeddingTheLastTheHead() {
        StageTimes times =
                times(
                        CountingHardware.work(CountingHardware.cluster(3, 1), new Layout(3, 1, 1)),
                        ZeroStage.NONE);
        long f = blockForward(20, 10.5);
        long i = blockInput(20, 10.5);
        long w = blockWeight(20);

        assertTimes(times, 0, 0, f + embedding(20), i, w + embedding(20));
        assertTimes(times, 1, 0, 2 * f, 2 * i, 2 * w);
        assertTimes(times, 2, 0, f + head(20), i + head(20), w + head(20));
    }

    @Test
    void aLaterSliceAttendsToTheEarlierOne() {
        StageTimes times =
                times(
                        CountingHardware.work(
                                CountingHardware.cluster(3, 1),
                                new Layout(3, 1, 1),
                                List.of(13, 7)),
                        ZeroStage.NONE);

        assertTimes(times, 1, 0, 2 * blockForward(13, 7), 2 * blockInput(13, 7), 2 * 31_200);
        assertTimes(times, 1, 1, 2 * blockForward(7, 17), 2 * blockInput(7, 17), 2 * 16_800);
    }

    /** Four replicas at 400 ns a byte: traffic dominates, three quarters of the bytes each way. */
    @Test
    void overASlowNetworkAnOpTakesAsLongAsItsTraffic() {
        var slow = new Link(7, 2.5e6);
        var group = new NodeGroup("box", 12, 1, CountingHardware.DEVICE, CountingHardware.INSIDE);
        var cluster = new Hardware("far apart", List.of(group), slow);
        PipelineWork work = CountingHardware.work(cluster, new Layout(3, 1, 4));
        long parameters = BLOCK_PARAMETERS + HEAD_PARAMETERS;
        long gather = parameters * 2 * 3 / 4 * 400 + 2 * 7;
        long scatter = parameters * 4 * 3 / 4 * 400 + 2 * 7;

        StageTimes divided = times(work, ZeroStage.PARAMETERS);
        StageTimes scattered = times(work, ZeroStage.GRADIENTS);

        assertTimes(divided, 2, 0, gather, gather, scatter);
        assertThat(scattered.forward(2, 0)).isEqualTo(blockForward(20, 10.5) + head(20));
        assertThat(scattered.backwardInput(2, 0)).isEqualTo(blockInput(20, 10.5) + head(20));
        assertThat(scattered.backwardWeight(2, 0)).isEqualTo(scatter);
        assertThat(scattered.backward(2, 0)).isEqualTo(scatter);
    }

    @Test
    void overAFastNetworkTrafficHidesBehindComputation() {
        PipelineWork work =
                CountingHardware.work(CountingHardware.cluster(12, 1), new Layout(3, 1, 4));
        for (ZeroStage zero : ZeroStage.values()) {
            StageTimes times = times(work, zero);

            assertThat(times.forward(1, 0)).isEqualTo(2 * blockForward(20, 10.5));
            assertThat(times.backward(1, 0))
                    .isEqualTo(2 * (blockInput(20, 10.5) + blockWeight(20)));
        }
    }
}
