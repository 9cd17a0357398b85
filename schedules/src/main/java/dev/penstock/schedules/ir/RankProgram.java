package dev.penstock.schedules.ir;

import java.util.List;
import java.util.stream.IntStream;

/**
 * What one rank does in one step, in its order. Ops are kept in eight bytes each and made when they
 * are looked at.
 */
public record RankProgram(int rank, List<Op> ops) {
    public RankProgram {
        ops = PackedOps.copyOf(ops);
    }

    /** One for each rank; entry r is what rank r does. */
    static List<RankProgram> ofRanks(List<List<Op>> programs) {
        return IntStream.range(0, programs.size())
                .mapToObj(rank -> new RankProgram(rank, programs.get(rank)))
                .toList();
    }

    /** Position of the last {@link Op.ReduceGradients} of a stage; -1 if there is none. */
    public int lastReductionOf(int stage) {
        return ops.lastIndexOf(new Op.ReduceGradients(stage));
    }
}
