package dev.penstock.cuda.cpu;

import dev.penstock.cuda.cpu.vector.Addresses;
import dev.penstock.cuda.cpu.vector.Lanes;
import dev.penstock.cuda.cpu.vector.VectorMath;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorMask;

/**
 * SwiGLU of a row: {@code z = a s(a) b} with {@code s(a) = 1 / (1 + exp(-a))}. Methods that take
 * vectors are called as in {@link GeluKernels}.
 */
final class GateKernels {
    private final Lanes lanes;

    GateKernels(Lanes lanes) {
        this.lanes = lanes;
    }

    void swiGlu(long a, long b, long z, int n) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        for (int i = 0; i < whole; i += step) {
            long at = 4L * i;
            FloatVector gate = lanes.load(a + at);
            FloatVector e = VectorMath.exp(gate.neg());
            gate.div(e.add(1f))
                    .mul(lanes.load(b + at))
                    .intoMemorySegment(Addresses.ALL, z + at, Lanes.ORDER);
        }
        if (whole < n) {
            swiGluRest(a + 4L * whole, b + 4L * whole, z + 4L * whole, n - whole);
        }
    }

    private void swiGluRest(long a, long b, long z, int n) {
        VectorMask<Float> rest = lanes.first(n);
        FloatVector gate = lanes.load(a, rest);
        FloatVector e = VectorMath.exp(gate.neg());
        lanes.store(gate.div(e.add(1f)).mul(lanes.load(b, rest)), z, rest);
    }

    /**
     * {@code da = dz * b * s * (1 + a * (1 - s)); db = dz * a * s}.
     *
     * @param gate address of a; b, da and db lie {@code n} floats behind a and da
     * @param dGate address of da, which may be that of a
     */
    void backward(long gate, long dz, long dGate, int n) {
        int step = lanes.count();
        int whole = lanes.whole(n);
        long other = 4L * n;
        for (int i = 0; i < whole; i += step) {
            long at = 4L * i;
            FloatVector a = lanes.load(gate + at);
            FloatVector b = lanes.load(gate + other + at);
            FloatVector dy = lanes.load(dz + at);
            FloatVector e = VectorMath.exp(a.neg());
            FloatVector s = lanes.broadcast(1f).div(e.add(1f));
            FloatVector value = a.mul(s);
            value.mul(dy).intoMemorySegment(Addresses.ALL, dGate + other + at, Lanes.ORDER);
            slope(s, value)
                    .mul(b)
                    .mul(dy)
                    .intoMemorySegment(Addresses.ALL, dGate + at, Lanes.ORDER);
        }
        if (whole < n) {
            long at = 4L * whole;
            backwardRest(gate + at, dz + at, dGate + at, other, n - whole);
        }
    }

    private void backwardRest(long gate, long dz, long dGate, long other, int n) {
        VectorMask<Float> rest = lanes.first(n);
        FloatVector a = lanes.load(gate, rest);
        FloatVector b = lanes.load(gate + other, rest);
        FloatVector dy = lanes.load(dz, rest);
        FloatVector e = VectorMath.exp(a.neg());
        FloatVector s = lanes.broadcast(1f).div(e.add(1f));
        FloatVector value = a.mul(s);
        lanes.store(value.mul(dy), dGate + other, rest);
        lanes.store(slope(s, value).mul(b).mul(dy), dGate, rest);
    }

    /**
     * The slope of {@code a s}: {@code s + a s (1 - s)}.
     *
     * @param value {@code a s}
     */
    private static FloatVector slope(FloatVector s, FloatVector value) {
        return value.sub(value.mul(s)).add(s);
    }
}
