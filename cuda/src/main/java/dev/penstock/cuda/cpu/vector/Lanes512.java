package dev.penstock.cuda.cpu.vector;

import jdk.incubator.vector.ByteVector;
import jdk.incubator.vector.DoubleVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.ShortVector;
import jdk.incubator.vector.VectorShuffle;
import jdk.incubator.vector.VectorSpecies;

/** 16 floats. */
final class Lanes512 extends Lanes {
    private static final VectorSpecies<Float> SPECIES = FloatVector.SPECIES_512;
    private static final VectorShuffle<Float> HALVES = xor(8);
    private static final VectorShuffle<Float> QUARTERS = xor(4);
    private static final VectorShuffle<Float> EIGHTHS = xor(2);
    private static final VectorShuffle<Float> NEIGHBOURS = xor(1);

    private Lanes512() {}

    static Lanes create() {
        return new Lanes512();
    }

    @Override
    public VectorSpecies<Float> species() {
        return SPECIES;
    }

    @Override
    public VectorSpecies<Integer> integers() {
        return IntVector.SPECIES_512;
    }

    @Override
    public VectorSpecies<Short> shorts() {
        return ShortVector.SPECIES_256;
    }

    @Override
    public VectorSpecies<Byte> bytes() {
        return ByteVector.SPECIES_128;
    }

    @Override
    public VectorSpecies<Double> doubles() {
        return DoubleVector.SPECIES_512;
    }

    @Override
    public VectorSpecies<Long> longs() {
        return LongVector.SPECIES_512;
    }

    @Override
    public VectorSpecies<Float> half() {
        return FloatVector.SPECIES_256;
    }

    @Override
    public int count() {
        return 16;
    }

    @Override
    public float sum(FloatVector vector) {
        FloatVector v = vector.add(vector.rearrange(HALVES));
        v = v.add(v.rearrange(QUARTERS));
        v = v.add(v.rearrange(EIGHTHS));
        return v.add(v.rearrange(NEIGHBOURS)).lane(0);
    }

    private static VectorShuffle<Float> xor(int distance) {
        return VectorShuffle.fromOp(SPECIES, i -> i ^ distance);
    }
}
