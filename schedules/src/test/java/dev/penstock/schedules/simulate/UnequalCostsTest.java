package dev.penstock.schedules.simulate;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.generate.GPipe;
import dev.penstock.schedules.generate.OneForwardOneBackward;
import dev.penstock.schedules.generate.base.BackwardOrder;
import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.lower.Lowering;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * Closed forms where every stage and every link has its own cost: n equal jobs through a row of
 * machines take the sum over all machines plus n - 1 times the slowest.
 */
class UnequalCostsTest {
    private static final long[] FORWARD = {5, 11, 3, 7, 2, 13};
    private static final long[] BACKWARD = {17, 8, 23, 9, 31, 19};

    private static final CostModel COSTS =
            new CostModel() {
                @Override
                public long nanos(int rank, int position, Op op) {
                    return switch (op) {
                        case Op.Forward _ -> FORWARD[op.stage()];
                        case Op.Backward _ -> BACKWARD[op.stage()];
                        case Op.BackwardInput _,
                                Op.BackwardWeight _,
                                Op.Recompute _,
                                Op.Overlapped _,
                                Op.Transfer _,
                                Op.ActivationOp _,
                                Op.ParameterOp _,
                                Op.ReduceGradients _ ->
                                0;
                    };
                }

                @Override
                public long latencyNanos(Channel channel) {
                    return 37L * channel.fromStage() + channel.toStage();
                }

                @Override
                public long occupancyNanos(Channel channel, WorkUnit unit) {
                    return channel.forward() ? 4L * channel.toStage() : 29 - channel.fromStage();
                }
            };

    /** Stages and links in a row, each a machine; latencies delay every job alike. */
    private static long flow(int ranks, int jobs, boolean forward) {
        var machines = new ArrayList<Long>();
        long latencies = 0;
        for (int i = 0; i < ranks; i++) {
            machines.add(forward ? FORWARD[i] : BACKWARD[i]);
            if (i > 0) {
                Channel link = forward ? new Channel(i - 1, i) : new Channel(i, i - 1);
                machines.add(COSTS.occupancyNanos(link, new WorkUnit(link.toStage(), 0, 0)));
                latencies += COSTS.latencyNanos(link);
            }
        }
        long once = machines.stream().mapToLong(cost -> cost).sum();
        return latencies + once + (jobs - 1) * Collections.max(machines);
    }

    @Test
    void gpipeIsTwoFlowsOneAfterTheOther() {
        for (int ranks = 1; ranks <= 6; ranks++) {
            for (int jobs = 1; jobs <= 10; jobs++) {
                var shape = PipelineShape.of(ranks, jobs);
                Schedule schedule = GPipe.schedule(shape, BackwardOrder.FIFO);
                long expected = flow(ranks, jobs, true) + flow(ranks, jobs, false);

                for (Schedule run : List.of(schedule, Lowering.lower(schedule))) {
                    assertThat(ScheduleSimulator.simulate(run, COSTS).makespanNanos())
                            .isEqualTo(expected);
                }
            }
        }
    }

    @Test
    void oneForwardOneBackwardOfASingleMicroBatchIsItsWayThereAndBack() {
        for (int ranks = 1; ranks <= 6; ranks++) {
            Schedule schedule = OneForwardOneBackward.schedule(PipelineShape.of(ranks, 1));

            assertThat(ScheduleSimulator.simulate(schedule, COSTS).makespanNanos())
                    .isEqualTo(flow(ranks, 1, true) + flow(ranks, 1, false));
        }
    }
}
