package dev.penstock.schedules.plan.work;

import java.util.Collections;
import java.util.List;

/**
 * Everything that a plan decides except the cut into stages.
 *
 * @param kind the schedule's, by the name that configurations use
 * @param chunks stages per rank, V
 * @param microBatches of each replica, M
 * @param sliceLengths tokens of each slice of a sequence
 * @param recompute whether the activations inside blocks are computed a second time instead of kept
 */
public record PlanChoice(
        Layout layout,
        ZeroStage zero,
        String kind,
        int chunks,
        int microBatches,
        List<Integer> sliceLengths,
        boolean recompute) {
    public PlanChoice {
        sliceLengths = List.copyOf(sliceLengths);
    }

    /** Token slices of a sequence. */
    public int slices() {
        return sliceLengths.size();
    }

    /** Whether slices differ by no more than the token that does not divide. */
    public boolean equalSlices() {
        return Collections.max(sliceLengths) - Collections.min(sliceLengths) <= 1;
    }

    /** Stages of the pipeline. */
    public int stages() {
        return layout.pipeline() * chunks;
    }

    public PlanChoice withKind(String other) {
        return new PlanChoice(layout, zero, other, chunks, microBatches, sliceLengths, recompute);
    }

    public PlanChoice withZero(ZeroStage other) {
        return new PlanChoice(layout, other, kind, chunks, microBatches, sliceLengths, recompute);
    }

    /** For people: {@code 1f1b with 8 micro-batches, pipeline 4 x tensor 2 x data 1, ZeRO 1}. */
    public String describe() {
        return "%s with %d micro-batches%s%s, pipeline %d x tensor %s x data %d, ZeRO %d%s"
                .formatted(
                        kind,
                        microBatches,
                        chunks == 1 ? "" : ", %d chunks".formatted(chunks),
                        slices() == 1
                                ? ""
                                : ", %d %sslices"
                                        .formatted(slices(), equalSlices() ? "" : "balanced "),
                        layout.pipeline(),
                        layout.describeShards(),
                        layout.data(),
                        zero.number(),
                        recompute ? ", recompute" : "");
    }
}
