package dev.penstock.actors.supervisor;

import java.util.BitSet;
import java.util.List;

/** An immutable set of ranks, in rising order. */
final class RankSet {
    static final RankSet NONE = new RankSet(new BitSet());

    private final BitSet bits;

    private RankSet(BitSet bits) {
        this.bits = bits;
    }

    boolean contains(int rank) {
        return bits.get(rank);
    }

    boolean isEmpty() {
        return bits.isEmpty();
    }

    int size() {
        return bits.cardinality();
    }

    RankSet with(int rank) {
        BitSet more = copy();
        more.set(rank);
        return new RankSet(more);
    }

    RankSet with(List<Integer> ranks) {
        BitSet more = copy();
        ranks.forEach(more::set);
        return new RankSet(more);
    }

    RankSet without(int rank) {
        BitSet fewer = copy();
        fewer.clear(rank);
        return new RankSet(fewer);
    }

    List<Integer> list() {
        return bits.stream().boxed().toList();
    }

    private BitSet copy() {
        return (BitSet) bits.clone();
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof RankSet set && set.bits.equals(bits);
    }

    @Override
    public int hashCode() {
        return bits.hashCode();
    }

    @Override
    public String toString() {
        return bits.toString();
    }
}
