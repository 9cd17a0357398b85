package dev.penstock.schedules.ir;

import java.util.AbstractList;
import java.util.Arrays;
import java.util.List;
import java.util.RandomAccess;
import org.jspecify.annotations.Nullable;

/**
 * An unmodifiable list of ops in eight bytes each. An op is made anew whenever it is looked at, so
 * compare ops with {@code equals}.
 */
final class PackedOps extends AbstractList<Op> implements RandomAccess {
    private final long[] codes;
    private final List<Op> rare;

    /** Keeps the array: the caller gives it away. */
    PackedOps(long[] codes, List<Op> rare) {
        this.codes = codes;
        this.rare = List.copyOf(rare);
    }

    static PackedOps copyOf(List<Op> ops) {
        if (ops instanceof PackedOps packed) {
            return packed;
        }
        var program = new ProgramWriter(0, ops.size());
        ops.forEach(program::add);
        return program.packed();
    }

    @Override
    public Op get(int index) {
        long code = codes[index];
        return OpCode.isRare(code) ? rare.get(OpCode.rarePlace(code)) : OpCode.op(code);
    }

    @Override
    public int size() {
        return codes.length;
    }

    /** Equal ops have equal codes, and rare ones stand in their order of appearance. */
    @Override
    public boolean equals(@Nullable Object other) {
        return other instanceof PackedOps packed
                ? Arrays.equals(codes, packed.codes) && rare.equals(packed.rare)
                : super.equals(other);
    }

    @Override
    public int hashCode() {
        return super.hashCode();
    }
}
