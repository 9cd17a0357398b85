package dev.penstock.schedules.generate.wired;

import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.simulate.CostModel;

import java.util.List;

/** What ops cost on each rank, for the simulator. */
record RankCosts(Placement placement, List<OpCosts> costs) implements CostModel {
    @Override
    public long nanos(int rank, int position, Op op) {
        OpCosts of = costs.get(rank);
        return switch (op) {
            case Op.Forward _ -> of.forwardNanos();
            case Op.Backward _ -> of.backwardInputNanos() + of.backwardWeightNanos();
            case Op.BackwardInput _ -> of.backwardInputNanos();
            case Op.BackwardWeight _ -> of.backwardWeightNanos();
            case Op.Recompute _,
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
        return costs.get(placement.senderOf(channel)).communicationNanos();
    }
}
