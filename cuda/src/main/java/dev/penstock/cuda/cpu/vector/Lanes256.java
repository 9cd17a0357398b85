package dev.penstock.cuda.cpu.vector;

import jdk.incubator.vector.ByteVector;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.ShortVector;
import jdk.incubator.vector.VectorShuffle;
import jdk.incubator.vector.VectorSpecies;

/** 8 floats. */
final class Lanes256 extends Lanes {
    private static final VectorSpecies<Float> SPECIES = FloatVector.SPECIES_256;
    private static final VectorShuffle<Float> HALVES = xor(4);
    private static final VectorShuffle<Float> QUARTERS = xor(2);
    private static final VectorShuffle<Float> NEIGHBOURS = xor(1);

    private Lanes256() {}

    static Lanes create() {
        return new Lanes256();
    }

    @Override
    public VectorSpecies<Float> species() {
        return SPECIES;
    }

    @Override
    public VectorSpecies<Integer> integers() {
        return IntVector.SPECIES_256;
    }

    @Override
    public VectorSpecies<Short> shorts() {
        return ShortVector.SPECIES_128;
    }

    @Override
    public VectorSpecies<Byte> bytes() {
        return ByteVector.SPECIES_64;
    }

    @Override
    public VectorSpecies<Double> doubles() {
        return DoubleVector.SPECIES_256;
    }

    @Override
    public VectorSpecies<Long> longs() {
        return LongVector.SPECIES_256;
    }

    @Override
    public VectorSpecies<Float> half() {
        return FloatVector.SPECIES_128;
    }

    @Override
    public int count() {
        return 8;
    }

    @Override
    public float sum(FloatVector vector) {
        FloatVector v = vector.add(vector.rearrange(HALVES));
        v = v.add(v.rearrange(QUARTERS));
        return v.add(v.rearrange(NEIGHBOURS)).lane(0);
    }

    private static VectorShuffle<Float> xor(int distance) {
        return VectorShuffle.fromOp(SPECIES, i -> i ^ distance);
    }
}
