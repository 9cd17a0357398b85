package dev.penstock.actors.fault;

/**
 * Steps {@code first .. last}, both included.
 *
 * @param first from 1
 */
public record StepSpan(long first, long last) {
    public StepSpan {
        if (first < 1 || last < first) {
            throw new IllegalArgumentException(
                    "expected 1 <= first <= last, got %d..%d".formatted(first, last));
        }
    }

    /** One step. */
    public static StepSpan only(long step) {
        return new StepSpan(step, step);
    }

    public boolean contains(long step) {
        return first <= step && step <= last;
    }

    /** {@code step 7} or {@code steps 3-9}. */
    @Override
    public String toString() {
        return first == last ? "step " + first : "steps %d-%d".formatted(first, last);
    }
}
