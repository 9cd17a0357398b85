package dev.penstock.actors.precision;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The loss scales of a run: a scaler after some step, and which of the later steps overflowed. All
 * states follow from these, so a run that goes back to a checkpoint has the scale that it had then.
 * For a run that does not scale its loss it holds nothing, and every scale is 1. One thread at a
 * time.
 */
public final class LossScaleHistory {
    private final @Nullable LossScaler start;
    private final long startStep;
    private final List<Long> overflows = new ArrayList<>();
    private long step;
    private @Nullable LossScaler now;

    /**
     * @param start the state after {@code step}; empty if the loss is not scaled
     */
    public LossScaleHistory(Optional<LossScaler> start, long step) {
        this.start = start.orElse(null);
        this.startStep = step;
        goBackTo(step);
    }

    /** The state after the last step; empty if the loss is not scaled. */
    public Optional<LossScaler> now() {
        return Optional.ofNullable(now);
    }

    /** What the loss of the next step is multiplied by; 1 if it is not scaled. */
    public double scale() {
        LossScaler last = now;
        return last == null ? 1 : last.scale();
    }

    /** The steps up to the last one that the optimizer did not see, if the loss is scaled. */
    public long skipped() {
        LossScaler last = now;
        return last == null ? 0 : last.skipped();
    }

    /** Takes the step that follows. */
    public void take(long next, boolean overflow) {
        LossScaler last = now;
        if (last == null) {
            return;
        }
        if (overflow) {
            overflows.add(next);
        }
        step = next;
        now = last.after(overflow);
    }

    /** Forgets all steps after this one. */
    public void goBackTo(long last) {
        LossScaler state = start;
        if (state == null) {
            return;
        }
        overflows.removeIf(each -> each > last);
        int next = 0;
        for (long each = startStep + 1; each <= last; each++) {
            boolean overflow = next < overflows.size() && overflows.get(next) == each;
            next += overflow ? 1 : 0;
            state = state.after(overflow);
        }
        step = last;
        now = state;
    }

    /**
     * Takes these steps after the start, up to the last one.
     *
     * @param left those of them that overflowed, rising
     */
    public void replay(List<Long> left, long last) {
        overflows.clear();
        overflows.addAll(left);
        goBackTo(last);
    }

    @Override
    public String toString() {
        return "after step %d: %s".formatted(step, now);
    }
}
