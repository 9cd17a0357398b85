package dev.penstock.runtime.model.layers;

import dev.penstock.actors.spi.NonFiniteException;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.parameters.Parameter;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.ArrayList;
import java.util.List;

/**
 * Watches small tensors through which every NaN or infinity of a pass must come: the moments of
 * layer norms in the forward, the gradients of biases in the backward, the losses. Where the loss
 * is scaled such a number is no failure: the guard only remembers it.
 */
public final class FiniteGuard {
    private final Kernels kernels;
    private long step;
    private WorkUnit unit = new WorkUnit(0, 0, 0);
    private boolean forgives;
    private boolean overflowed;

    /** The places of the op's checks so far. */
    private final List<String> places = new ArrayList<>();

    public FiniteGuard(Kernels kernels) {
        this.kernels = kernels;
    }

    /**
     * A step begins.
     *
     * @param forgiving whether numbers that are not finite are remembered and not thrown
     */
    public void atStep(long newStep, boolean forgiving) {
        step = newStep;
        forgives = forgiving;
        overflowed = false;
    }

    /** Returns whether the step has met a number that is not finite, and was forgiven. */
    public boolean overflowed() {
        return overflowed;
    }

    private void found(String place) {
        if (!forgives) {
            throw new NonFiniteException(step, unit, place);
        }
        overflowed = true;
    }

    /** An op begins; checks left open by one that was aborted are discarded. */
    public void atUnit(WorkUnit newUnit) {
        unit = newUnit;
        kernels.watchNone();
        places.clear();
    }

    /**
     * Checks a tensor, perhaps asynchronously: then {@link #verify} throws.
     *
     * @param place the name of the tensor, for the message
     * @throws NonFiniteException if an element is not finite
     */
    void check(Tensor tensor, String place) {
        if (!kernels.watchFinite(tensor)) {
            found(place);
        }
        places.add(place);
    }

    /**
     * Same for the gradient of a parameter after something was added to it.
     *
     * @throws NonFiniteException if an element is not finite
     */
    void checkGradient(Parameter parameter, String place) {
        if (!parameter.keepsGradient()) {
            check(parameter.gradient(), place);
            return;
        }
        if (!kernels.watchFiniteLater(parameter.gradient())) {
            found(place);
        }
        places.add(place);
    }

    /**
     * Notes the answer of a kernel that found no element out of range, or may yet find one.
     *
     * @param withinRange see {@link Kernels#foldGradient}
     * @throws NonFiniteException if an element is out of range
     */
    public void checked(boolean withinRange, String place) {
        if (!withinRange) {
            found(place);
        }
        places.add(place);
    }

    /**
     * Waits for the op's kernels and evaluates its checks.
     *
     * @throws NonFiniteException naming the first place where an element is not finite
     */
    public void verify() {
        int first = kernels.firstNotFinite();
        kernels.finish();
        if (first >= 0) {
            found(places.get(first));
        }
        places.clear();
    }
}
