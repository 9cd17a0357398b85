package dev.penstock.runtime.model.stage;

import dev.penstock.cuda.device.FixedPoint;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.layers.FiniteGuard;
import dev.penstock.runtime.model.parameters.GroupGradient;
import dev.penstock.runtime.model.parameters.RowPool;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The gradients of a stage's single micro-batches where sums are exact: each adds up in a scratch
 * of its own, in the order of its backward, and is then folded into the sums. Their order does not
 * matter, nor does it who computes which.
 *
 * <pre>
 *   enter 0  .. backward of all slices ..  fold 0       enter 1  ..  fold 1
 *   enter 0  inputs of 0   enter 1  inputs of 1   enter 0  weights of 0   fold 0  ..
 * </pre>
 */
final class MicroBatchGradients {
    private final Kernels kernels;
    private final List<GroupGradient> gradients;
    private final RowPool scratches;
    private final float limit;

    /** For messages, of every gradient. */
    private final List<String> places;

    private final int units;
    private final Map<Integer, Open> open = new HashMap<>();
    private final BitSet folded = new BitSet();

    /** Whether the gradients' own rows are a micro-batch's scratch. */
    private boolean ownTaken;

    private float scale = 1;

    /** A micro-batch between the first and the last op of its backward. */
    private static final class Open {
        private final boolean own;
        private final List<Tensor> rows;
        private int finished;

        Open(boolean own, List<Tensor> rows) {
            this.own = own;
            this.rows = rows;
        }
    }

    /**
     * @param scratches rows that are zero
     * @param addends how many gradients of micro-batches a step has on all ranks
     * @param units of a micro-batch
     */
    MicroBatchGradients(
            Kernels kernels,
            List<GroupGradient> gradients,
            RowPool scratches,
            long addends,
            int units) {
        this.kernels = kernels;
        this.gradients = gradients;
        this.scratches = scratches;
        this.limit = FixedPoint.limit(addends);
        this.units = units;
        places =
                gradients.stream()
                        .map(
                                gradient ->
                                        "fixed-point sum of %s (elements up to %,.0f)"
                                                .formatted(gradient.name(), limit))
                        .toList();
    }

    /** Gradients are multiplied by this power of two; what is folded is not. */
    void carry(float lossScale) {
        scale = lossScale;
    }

    /** Lets backwards add to a micro-batch's scratch. */
    void enter(int microBatch) {
        Open entered = open.computeIfAbsent(microBatch, _ -> open());
        for (int i = 0; i < gradients.size(); i++) {
            gradients.get(i).backwardsAddTo(entered.rows.get(i));
        }
    }

    private Open open() {
        boolean own = !ownTaken && gradients.stream().allMatch(each -> each.own() != null);
        ownTaken |= own;
        List<Tensor> rows = new ArrayList<>();
        for (GroupGradient gradient : gradients) {
            Tensor lent = own ? gradient.own() : null;
            rows.add(lent == null ? scratches.take(gradient.scratch(), gradient.name()) : lent);
        }
        return new Open(own, rows);
    }

    /**
     * A unit's gradients are complete: those of its micro-batch are folded if it was the last one,
     * or dropped if they are in the sums already.
     *
     * @throws dev.penstock.actors.spi.NonFiniteException if an element is not finite, or too large
     */
    void finish(int microBatch, FiniteGuard guard) {
        Open done = open.get(microBatch);
        if (done == null || ++done.finished < units) {
            return;
        }
        if (folded.get(microBatch)) {
            done.rows.forEach(kernels::zero);
        } else {
            fold(done, guard);
        }
        open.remove(microBatch);
        giveBack(done);
        folded.set(microBatch);
        gradients.forEach(GroupGradient::leaveScratch);
    }

    private void fold(Open done, FiniteGuard guard) {
        for (int i = 0; i < gradients.size(); i++) {
            GroupGradient gradient = gradients.get(i);
            Tensor row = done.rows.get(i);
            GroupGradient.scale(row, 1 / scale, kernels);
            guard.checked(gradient.fold(row, limit, kernels), places.get(i));
        }
        guard.verify();
    }

    private void giveBack(Open done) {
        if (done.own) {
            ownTaken = false;
        } else {
            done.rows.forEach(scratches::giveBack);
        }
    }

    /** Discards what an abandoned step left in scratches and sums, which the caller clears. */
    void begin() {
        resume();
        folded.clear();
    }

    /** Discards what an abandoned pass left in scratches; what is folded stays. */
    void resume() {
        for (Open left : open.values()) {
            left.rows.forEach(kernels::zero);
            giveBack(left);
        }
        open.clear();
        gradients.forEach(GroupGradient::leaveScratch);
    }

    /** Returns the micro-batches whose gradients are in the sums. */
    BitSet folded() {
        return (BitSet) folded.clone();
    }
}
