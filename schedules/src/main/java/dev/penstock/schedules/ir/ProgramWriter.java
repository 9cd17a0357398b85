package dev.penstock.schedules.ir;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** A program under construction, in little memory. Not for several threads. */
public final class ProgramWriter {
    private final int rank;
    private final List<Op> rare = new ArrayList<>();
    private long[] codes;
    private int size;

    /**
     * @param expectedOps how many there will be; a guess is good enough
     */
    public ProgramWriter(int rank, int expectedOps) {
        this.rank = rank;
        this.codes = new long[Math.max(8, expectedOps)];
    }

    /** Appends an op. */
    public void add(Op op) {
        if (size == codes.length) {
            codes = Arrays.copyOf(codes, size + (size >> 1));
        }
        if (OpCode.fits(op)) {
            codes[size] = OpCode.of(op);
        } else {
            codes[size] = OpCode.ofRare(rare.size());
            rare.add(op);
        }
        size++;
    }

    /** The program so far; it does not see what is added later. */
    public RankProgram program() {
        return new RankProgram(rank, packed());
    }

    PackedOps packed() {
        return new PackedOps(Arrays.copyOf(codes, size), rare);
    }
}
