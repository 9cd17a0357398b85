package dev.penstock.runtime.metrics;

/**
 * A measured step beside the ideal one.
 *
 * @param times where the measured time went
 * @param ideal the simulated step
 */
public record StepMeasure(StepTimes times, IdealStep ideal) {
    /**
     * Makespan of the ideal step over the measured span of all ranks: 1 is as good as this schedule
     * gets with equal pipelines.
     */
    public double efficiency() {
        return times.spanNanos() == 0 ? 1 : (double) ideal.makespanNanos() / times.spanNanos();
    }
}
