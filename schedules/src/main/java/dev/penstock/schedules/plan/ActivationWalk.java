package dev.penstock.schedules.plan;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.WorkUnit;

/**
 * The most bytes of activations that a rank holds at a time, with stages and slices of any size.
 */
final class ActivationWalk {
    /** What a live unit holds. */
    interface KeptBytes {
        long of(int stage, int slice);
    }

    private ActivationWalk() {}

    /** A unit is live from its forward to its full backward or its weights' part, both included. */
    static long peak(RankProgram program, KeptBytes kept) {
        long live = 0;
        long peak = 0;
        for (Op op : program.ops()) {
            for (Op.Compute part : op.computations()) {
                switch (part) {
                    case Op.Forward(WorkUnit u) -> {
                        live += kept.of(u.stage(), u.slice());
                        peak = Math.max(peak, live);
                    }
                    case Op.Backward(WorkUnit u) -> live -= kept.of(u.stage(), u.slice());
                    case Op.BackwardWeight(WorkUnit u) -> live -= kept.of(u.stage(), u.slice());
                    case Op.BackwardInput _, Op.Recompute _ -> {}
                }
            }
        }
        return peak;
    }
}
