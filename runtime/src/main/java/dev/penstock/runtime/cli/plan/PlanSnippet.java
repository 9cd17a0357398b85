package dev.penstock.runtime.cli.plan;

import dev.penstock.runtime.planning.FittingWays.Way;
import dev.penstock.schedules.plan.Plan;
import dev.penstock.schedules.plan.work.PlanChoice;
import dev.penstock.schedules.plan.work.PlanRequest;
import dev.penstock.schedules.plan.work.ZeroStage;
import java.util.stream.Collectors;

/** The part of a run's configuration that a plan decides. */
final class PlanSnippet {
    private PlanSnippet() {}

    /** HOCON, to be copied. */
    static String of(PlanRequest request, Plan plan) {
        PlanChoice choice = plan.choice();
        var text = new StringBuilder("# for a run's configuration\n");
        text.append("pipeline {\n  stages = ").append(choice.layout().pipeline());
        text.append("\n  chunks = ").append(choice.chunks());
        text.append("\n  partition = ").append(plan.partition()).append("\n}\n");
        text.append("parallel {\n  tensor = ").append(choice.layout().describeShards());
        text.append("\n  data = ").append(choice.layout().data());
        if (choice.zero() != ZeroStage.NONE) {
            text.append("\n  zero { stage = ")
                    .append(choice.zero().number())
                    .append(asPlanned(choice.zero()))
                    .append(" }");
        }
        text.append("\n}\nschedule {\n  kind = ").append(choice.kind());
        text.append("\n  slices = ").append(choice.slices());
        if (!choice.equalSlices()) {
            text.append("\n  slice-lengths = ").append(choice.sliceLengths());
        }
        if (choice.recompute()) {
            text.append("\n  recompute = full");
        }
        text.append("\n}\nbatch {\n  sequences = ").append(request.batch());
        text.append("\n  micro-batches = ")
                .append(choice.microBatches() * choice.layout().data())
                .append("\n}\n");
        return text.toString();
    }

    /** The same of a way that plans do not know. */
    static String of(Way way) {
        return way.settings().stream()
                .map(setting -> setting.replaceFirst("=", " = ") + "\n")
                .collect(Collectors.joining("", "# for a run's configuration\n", ""));
    }

    /** Plans count blocks that come one by one, and gradients that do not pile up. */
    private static String asPlanned(ZeroStage zero) {
        return (zero.dividesGradients() ? ", reduce = per-micro-batch" : "")
                + (zero.dividesParameters() ? ", residency = layer" : "");
    }
}
