package dev.penstock.runtime.model.layers;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.DropoutMask;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.parameters.CounterRandom;

/**
 * Dropout of what the low-rank branches of a stage read. Masks are computed again wherever they are
 * needed, see {@link DropoutKeys}. Not thread-safe.
 */
public final class AdapterDropout {
    private final double probability;
    private final DropoutKeys keys;
    private final Tensor room;

    private AdapterDropout(double probability, DropoutKeys keys, Tensor room) {
        this.probability = probability;
        this.keys = keys;
        this.room = room;
    }

    /**
     * Allocates room for one input of the largest unit.
     *
     * @param rows of the largest unit
     * @param widest columns of the widest input
     */
    public static AdapterDropout allocate(
            DeviceScope scratch, DropoutKeys keys, int rows, int widest, double probability) {
        return new AdapterDropout(
                probability,
                keys,
                scratch.tensor(
                        "input of an adapter after dropout",
                        DType.F32,
                        1,
                        Math.multiplyExact(rows, widest)));
    }

    /** Returns whether anything is dropped in this step. */
    boolean isOn() {
        return keys.isOn();
    }

    /** Returns the factor that makes up for what is dropped. */
    double scale() {
        return 1 / (1 - probability);
    }

    /**
     * Returns the mask of a branch, which does not scale what it keeps: a rounded input would be
     * rounded once more.
     *
     * @param name of its inner matrix
     * @param firstColumn of the layer's input that this rank has
     */
    DropoutMask mask(String name, int firstColumn) {
        return new DropoutMask(CounterRandom.of(0, name).bits(0), firstColumn, probability, 1);
    }

    /** Returns room for a matrix, which is used until the next call. */
    Tensor room(DType type, int rows, int columns) {
        return new Tensor(room.buffer(), room.offsetBytes(), type, rows, columns, columns);
    }

    /**
     * Returns an input after dropout, not scaled, valid until the next call of any method; the
     * input itself where nothing is dropped.
     *
     * @param firstRow of the input in the unit
     */
    Tensor dropped(Kernels kernels, Tensor x, int firstRow, DropoutMask mask) {
        Tensor unit = keys.ofUnit();
        if (unit == null) {
            return x;
        }
        Tensor y = room(x.type(), x.rows(), x.columns());
        kernels.dropout(x, unit.rows(firstRow, x.rows()), mask, y, false);
        return y;
    }

    /** Adds to an input's gradient what comes from that after dropout, of a whole unit. */
    void addGradient(Kernels kernels, Tensor gradient, DropoutMask mask, Tensor dx) {
        Tensor unit = keys.ofUnit();
        if (unit == null) {
            kernels.add(gradient, dx);
        } else {
            kernels.dropout(gradient, unit.rows(0, dx.rows()), mask, dx, true);
        }
    }
}
