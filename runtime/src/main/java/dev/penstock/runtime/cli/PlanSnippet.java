package dev.penstock.runtime.cli;

import dev.penstock.schedules.plan.Plan;
import dev.penstock.schedules.plan.PlanChoice;
import dev.penstock.schedules.plan.PlanRequest;

/** The part of a run's configuration that a plan decides. */
final class PlanSnippet {
    private PlanSnippet() {}

    /** HOCON, to be copied. */
    static String of(PlanRequest request, Plan plan) {
        PlanChoice choice = plan.choice();
        var text = new StringBuilder("# for a run's configuration\n");
        if (choice.layout().data() > 1) {
            text.append(
                    "# of each of %d replicas, ZeRO %d%n"
                            .formatted(choice.layout().data(), choice.zero().number()));
        }
        if (choice.layout().tensor() > 1) {
            text.append("# every matrix in %d shards%n".formatted(choice.layout().tensor()));
        }
        text.append("pipeline {\n  stages = ").append(choice.layout().pipeline());
        text.append("\n  chunks = ").append(choice.chunks());
        text.append("\n  partition = ").append(plan.partition()).append("\n}\n");
        text.append("schedule {\n  kind = ").append(choice.kind());
        text.append("\n  slices = ").append(choice.slices());
        if (!choice.equalSlices()) {
            text.append("\n  slice-lengths = ").append(choice.sliceLengths());
        }
        if (choice.recompute()) {
            text.append("\n  recompute = full");
        }
        text.append("\n}\nbatch {\n  sequences = ")
                .append(request.batch() / choice.layout().data());
        text.append("\n  micro-batches = ").append(choice.microBatches()).append("\n}\n");
        return text.toString();
    }
}
