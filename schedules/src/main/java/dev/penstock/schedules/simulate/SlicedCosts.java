package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.Arrays;

/** Costs that depend on the kind of op and its slice; the last entry holds for all later slices. */
final class SlicedCosts implements CostModel {
    private final long[] forward;
    private final long[] backward;
    private final long[] backwardInput;
    private final long transfer;

    SlicedCosts(long[] forward, long[] backward, long[] backwardInput, long transfer) {
        if (forward.length == 0 || backward.length == 0) {
            throw new IllegalArgumentException("costs of at least one slice are needed");
        }
        if (transfer < 0
                || Arrays.stream(forward).anyMatch(cost -> cost < 0)
                || Arrays.stream(backward).anyMatch(cost -> cost < 0)
                || Arrays.stream(backwardInput).anyMatch(cost -> cost < 0)) {
            throw new IllegalArgumentException(
                    "costs must be 0 or more, got forward %s, backward %s, transfer %d"
                            .formatted(
                                    Arrays.toString(forward), Arrays.toString(backward), transfer));
        }
        this.forward = forward;
        this.backward = backward;
        this.backwardInput = backwardInput;
        this.transfer = transfer;
    }

    @Override
    public long nanos(int rank, int position, Op op) {
        return switch (op) {
            case Op.Forward(WorkUnit unit) -> ofSlice(forward, unit.slice());
            case Op.Backward(WorkUnit unit) -> ofSlice(backward, unit.slice());
            case Op.BackwardInput(WorkUnit unit) -> ofSlice(backwardInput, unit.slice());
            case Op.BackwardWeight(WorkUnit unit) ->
                    ofSlice(backward, unit.slice()) - ofSlice(backwardInput, unit.slice());
            case Op.Recompute(WorkUnit unit) -> ofSlice(forward, unit.slice());
            case Op.Overlapped(Op.Forward f, Op.Compute p) ->
                    nanos(rank, position, f) + nanos(rank, position, p);
            case Op.Transfer _, Op.ActivationOp _, Op.ParameterOp _, Op.ReduceGradients _ -> 0;
        };
    }

    @Override
    public long latencyNanos(Channel channel) {
        return transfer;
    }

    private static long ofSlice(long[] costs, int slice) {
        return costs[Math.min(slice, costs.length - 1)];
    }
}
