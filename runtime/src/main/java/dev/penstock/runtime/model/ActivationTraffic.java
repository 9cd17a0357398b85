package dev.penstock.runtime.model;

import dev.penstock.actors.spi.RankPlace;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.List;

/** What a rank's computations send to others in the middle of an op, known from sizes alone. */
public final class ActivationTraffic {
    private final GptSettings settings;
    private final BatchShape batch;
    private final RankPlace place;

    /**
     * @param place of the rank
     */
    public ActivationTraffic(GptSettings settings, RankPlace place) {
        this.settings = settings;
        this.batch = settings.batchOfPart();
        this.place = place;
    }

    /** Bytes of keys, values and their gradients to the next context part, by all of these ops. */
    public long ring(List<Op> ops) {
        return ops.stream()
                .flatMap(op -> op.computations().stream())
                .mapToLong(op -> ring(op, ops))
                .sum();
    }

    private long ring(Op.Compute op, List<Op> ops) {
        StageRole role = settings.role(op.stage(), place);
        long blocks =
                switch (op) {
                    case Op.Forward _, Op.Recompute _ -> role.layers();
                    case Op.Backward _ -> 2L * role.layers() + runAgain(role, ops);
                    case Op.BackwardInput _ -> 2L * role.layers();
                    case Op.BackwardWeight _ -> 0;
                };
        return blocks * (settings.grid().context() - 1) * keyValueBytes(role, op.unit());
    }

    /** Of this part's tokens up to the end of the slice. */
    private long keyValueBytes(StageRole role, WorkUnit unit) {
        long rows = (long) batch.sequences() * batch.firstToken(unit.slice() + 1);
        return rows * 2 * settings.shape(role).headColumns() * Float.BYTES;
    }

    /** Blocks whose forward runs again inside a backward. */
    private long runAgain(StageRole role, List<Op> ops) {
        boolean split =
                ops.stream()
                        .flatMap(op -> op.computations().stream())
                        .anyMatch(
                                op -> op instanceof Op.BackwardInput && op.stage() == role.stage());
        return split
                ? 0
                : settings.recomputedBlocks().stream()
                        .filter(
                                block ->
                                        block >= role.firstLayer()
                                                && block < role.firstLayer() + role.layers())
                        .count();
    }
}
