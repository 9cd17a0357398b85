package dev.penstock.schedules.simulate;

import dev.penstock.schedules.ir.LayerRange;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;

/**
 * What a rank sends to its replicas in a pass: every gather and every reduction of its program, and
 * what computations gather by themselves. With N replicas an op that moves P elements sends P (N -
 * 1) / N of them, so a step that gathers forward and backward and reduces once sends three times
 * that (Rajbhandari et al., ZeRO, section 7).
 *
 * @param gatherBytes for parameters
 * @param reductionBytes for gradients
 */
public record ReplicaTraffic(int rank, long gatherBytes, long reductionBytes) {
    /** Bytes that one op sends. */
    public interface SentBytes {
        /** A {@link Op.GatherParameters}. */
        long gather(int stage, LayerRange layers);

        /** A {@link Op.ReduceGradients}. */
        long reduction(int stage);

        /** A computation that gathers what it needs when it needs it. */
        default long computation(Op.Compute op) {
            return 0;
        }
    }

    /** Of a rank. */
    public static ReplicaTraffic of(RankProgram program, SentBytes sizes) {
        long gathers = 0;
        long reductions = 0;
        for (Op op : program.ops()) {
            for (Op.Compute part : op.computations()) {
                gathers += sizes.computation(part);
            }
            if (op instanceof Op.GatherParameters(int stage, LayerRange layers)) {
                gathers += sizes.gather(stage, layers);
            } else if (op instanceof Op.ReduceGradients(int stage)) {
                reductions += sizes.reduction(stage);
            }
        }
        return new ReplicaTraffic(program.rank(), gathers, reductions);
    }

    /** All together. */
    public long bytes() {
        return gatherBytes + reductionBytes;
    }
}
