package dev.penstock.schedules.plan;

import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.GatherSettings;
import dev.penstock.schedules.lower.GradientReduction;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.lower.LoweringOptions;
import dev.penstock.schedules.lower.ParameterResidency;
import dev.penstock.schedules.plan.work.PlanChoice;
import dev.penstock.schedules.plan.work.RankMemory;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.validate.Conditions;
import dev.penstock.schedules.validate.MemoryLimit;
import dev.penstock.schedules.validate.MemoryModel;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/**
 * The order of a plan with everything that a run of it adds: recomputes, gathers and releases of
 * divided parameters, reductions among replicas, sends and receives.
 */
final class LoweredPlan {
    private LoweredPlan() {}

    /** The order with all ops of a choice. */
    static Schedule lowered(PlanChoice choice, Schedule order) {
        LoweringOptions options = LoweringOptions.plain();
        if (choice.recompute()) {
            options = options.withRecompute();
        }
        if (choice.zero().dividesParameters()) {
            options = options.withGathers(new GatherSettings(ParameterResidency.PER_OP, 1));
        }
        if (choice.layout().data() > 1) {
            options =
                    options.withReduction(
                            choice.zero().dividesGradients()
                                    ? GradientReduction.PER_MICRO_BATCH
                                    : GradientReduction.PER_STEP);
        }
        return Lowering.lower(order, options);
    }

    /**
     * What the judge holds it to: the channels of a run, and the devices' memory.
     *
     * @param memory of every rank; what is not activations is there throughout
     */
    static Conditions conditions(Candidate candidate, InFlight inFlight, List<RankMemory> memory) {
        Conditions conditions =
                Conditions.training()
                        .with(inFlight)
                        .withMemoryLimit(
                                new MemoryLimit(
                                        model(candidate.cut()),
                                        memory.stream().map(RankMemory::capacity).toList(),
                                        memory.stream()
                                                .map(rank -> rank.state() + rank.working())
                                                .toList()));
        return candidate.choice().layout().data() > 1 ? conditions.withReplicas() : conditions;
    }

    /** Blocks are gathered and recomputed one by one: the working space has room for those. */
    private static MemoryModel model(Cut cut) {
        var kept = new ArrayList<List<Long>>();
        var gathered = new ArrayList<List<Long>>();
        for (int s = 0; s < cut.partition().size(); s++) {
            int stage = s;
            kept.add(
                    IntStream.range(0, cut.work().slices())
                            .mapToObj(slice -> cut.keptBytes(stage, slice))
                            .toList());
            gathered.add(List.of(0L));
        }
        return new MemoryModel(kept, kept, gathered);
    }
}
