package dev.penstock.runtime.model;

import dev.penstock.actors.spi.NonFiniteException;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.schedules.ir.WorkUnit;

/**
 * Watches small tensors through which every NaN or infinity of a pass must come: the moments of
 * layer norms forward, the gradients of biases backward, the losses.
 */
final class FiniteGuard {
    private final Kernels kernels;
    private long step;
    private WorkUnit unit = new WorkUnit(0, 0, 0);

    FiniteGuard(Kernels kernels) {
        this.kernels = kernels;
    }

    void atStep(long newStep) {
        step = newStep;
    }

    void atUnit(WorkUnit newUnit) {
        unit = newUnit;
    }

    /**
     * @param place what the tensor is, for the message
     * @throws NonFiniteException if an element is not finite
     */
    void check(Tensor tensor, String place) {
        if (!kernels.allFinite(tensor)) {
            throw new NonFiniteException(step, unit, place);
        }
    }
}
