package dev.penstock.cuda.cpu.vector;

import java.nio.ByteOrder;
import jdk.incubator.vector.ByteVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.LongVector;
import jdk.incubator.vector.ShortVector;
import jdk.incubator.vector.VectorMask;
import jdk.incubator.vector.VectorSpecies;

/**
 * The vectors of one width: loads, stores and sums for kernels that are written once for all
 * widths. A process normally opens one width, so only one subclass is ever loaded and the compiler
 * sees constants; with both loaded (in tests) everything stays right but slow.
 *
 * <p>Only operations whose bits are fixed by IEEE 754 are offered: sums of lanes go by a fixed tree
 * of shuffles, since the order inside {@code reduceLanes(ADD)} changes when code gets compiled.
 *
 * <p>Long kernels store by the vector's own method: after a few dozen vector operations the
 * compiler inlines only what the JDK marks as always inlined, and a call of ours would turn vectors
 * into objects.
 */
public abstract sealed class Lanes permits Lanes256, Lanes512 {
    public static final ByteOrder ORDER = ByteOrder.LITTLE_ENDIAN;

    /** Lanes of {@code bits} wide vectors; loads no class but the one wanted. */
    public static Lanes of(int bits) {
        return bits == 512 ? Lanes512.create() : Lanes256.create();
    }

    public abstract VectorSpecies<Float> species();

    public abstract VectorSpecies<Integer> integers();

    /** Shorts, as many as floats: half as wide. */
    public abstract VectorSpecies<Short> shorts();

    /** Bytes, as many as floats: a quarter as wide. */
    public abstract VectorSpecies<Byte> bytes();

    /** Doubles as wide as the floats: half as many. */
    public abstract VectorSpecies<Double> doubles();

    /** Longs as wide as the floats: half as many. */
    public abstract VectorSpecies<Long> longs();

    /** Floats, as many as doubles: half as wide. */
    public abstract VectorSpecies<Float> half();

    public abstract int count();

    /** {@code n} rounded down to whole vectors. */
    public final int whole(int n) {
        return n & -count();
    }

    /** The first {@code n} lanes of a vector. */
    public final VectorMask<Float> first(int n) {
        return species().indexInRange(0, n);
    }

    public final FloatVector load(long address) {
        return FloatVector.fromMemorySegment(species(), Addresses.ALL, address, ORDER);
    }

    public final FloatVector load(long address, VectorMask<Float> mask) {
        return FloatVector.fromMemorySegment(species(), Addresses.ALL, address, ORDER, mask);
    }

    public final void store(FloatVector vector, long address) {
        vector.intoMemorySegment(Addresses.ALL, address, ORDER);
    }

    public final void store(FloatVector vector, long address, VectorMask<Float> mask) {
        vector.intoMemorySegment(Addresses.ALL, address, ORDER, mask);
    }

    public final ShortVector loadShorts(long address) {
        return ShortVector.fromMemorySegment(shorts(), Addresses.ALL, address, ORDER);
    }

    public final ByteVector loadBytes(long address) {
        return ByteVector.fromMemorySegment(bytes(), Addresses.ALL, address, ORDER);
    }

    public final LongVector loadLongs(long address) {
        return LongVector.fromMemorySegment(longs(), Addresses.ALL, address, ORDER);
    }

    public final FloatVector zero() {
        return FloatVector.zero(species());
    }

    public final FloatVector broadcast(float value) {
        return FloatVector.broadcast(species(), value);
    }

    /** The sum of all lanes, always in the same order. */
    public abstract float sum(FloatVector vector);
}
