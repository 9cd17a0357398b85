package dev.penstock.schedules.ir;

import java.util.List;

/** What one rank does in one step, in its order. */
public record RankProgram(int rank, List<Op> ops) {
    public RankProgram {
        ops = List.copyOf(ops);
    }
}
