package dev.penstock.runtime.planning;

import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.plan.slices.SlicePlan;
import dev.penstock.schedules.plan.slices.SlicePlanner;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * The slices chosen by TeraPipe's dynamic programme, and the best equal ones for comparison.
 *
 * @param equal empty if no number of equal slices lies on the grid
 */
public record PlannedSlices(SlicePlan best, Optional<SlicePlan> equal, int microBatches) {
    private static final int MOST_EQUAL = 256;

    /**
     * Plans the slices of a sequence.
     *
     * @throws IllegalArgumentException if the grid does not divide the sequence
     */
    public static PlannedSlices of(SliceTimes times, PipelineShape shape, int grid) {
        int stages = shape.stages();
        int microBatches = shape.microBatches();
        // a thousandth of a sequence, where the paper's tenth of a millisecond would be coarse
        long whole = times.cost().nanos(times.tokens(), 0);
        long epsilon = Math.min(SlicePlanner.PAPER_EPSILON_NANOS, whole / 1_000);
        SlicePlan best =
                SlicePlanner.plan(
                        times.cost(), times.tokens(), grid, stages, microBatches, epsilon);
        Optional<SlicePlan> equal =
                IntStream.rangeClosed(1, Math.min(MOST_EQUAL, times.tokens() / grid))
                        .filter(slices -> times.tokens() % (slices * grid) == 0)
                        .mapToObj(slices -> equal(times, slices, stages))
                        .min((a, b) -> Long.compare(makespan(a, shape), makespan(b, shape)));
        return new PlannedSlices(best, equal, microBatches);
    }

    private static SlicePlan equal(SliceTimes times, int slices, int stages) {
        int length = times.tokens() / slices;
        return SlicePlan.of(
                IntStream.range(0, slices).map(_ -> length).boxed().toList(), times.cost(), stages);
    }

    private static long makespan(SlicePlan plan, PipelineShape shape) {
        return plan.makespanNanos(shape.microBatches());
    }

    public List<Integer> lengths() {
        return best.lengths();
    }

    /** Describes the slices for people. */
    public List<String> describe(SliceTimes times) {
        String compared =
                equal.map(
                                plan ->
                                        "; the best equal slices, %d of %d tokens: %s"
                                                .formatted(
                                                        plan.lengths().size(),
                                                        plan.lengths().getFirst(),
                                                        time(plan)))
                        .orElse("");
        return List.of(
                "predicted step of terapipe: %s on %d stages%s"
                        .formatted(time(best), best.stages(), compared),
                times.origin());
    }

    private String time(SlicePlan plan) {
        return PredictedTime.text(plan.makespanNanos(microBatches));
    }
}
