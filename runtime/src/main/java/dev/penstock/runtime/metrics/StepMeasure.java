package dev.penstock.runtime.metrics;

/**
 * A measured step and the ideal one.
 *
 * @param times how the measured time was spent
 * @param ideal the simulated step
 */
public record StepMeasure(StepTimes times, IdealStep ideal) {
    /**
     * Returns the makespan of the ideal step over the measured span of all ranks: 1 is the best
     * that this schedule can achieve with equal pipelines.
     */
    public double efficiency() {
        return times.spanNanos() == 0 ? 1 : (double) ideal.makespanNanos() / times.spanNanos();
    }
}
