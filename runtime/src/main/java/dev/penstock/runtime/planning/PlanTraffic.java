package dev.penstock.runtime.planning;

import dev.penstock.actors.collective.CollectiveForm;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.RunSteps;
import dev.penstock.actors.spi.StepTraffic;
import dev.penstock.actors.spi.Timeouts;
import dev.penstock.runtime.config.run.DeviceSection;
import dev.penstock.runtime.launch.ConfiguredModel;
import dev.penstock.runtime.launch.PlannedTraffic;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.FineTuning;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.Positions;
import dev.penstock.runtime.model.shape.Precision;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.runtime.model.shape.TrainedParts;
import dev.penstock.runtime.model.shape.ZeroSettings;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.FrozenStages;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.lower.LoweringOptions;
import dev.penstock.schedules.plan.Plan;
import dev.penstock.schedules.plan.work.PlanChoice;
import dev.penstock.schedules.plan.work.PlanRequest;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The bytes that ranks would send to each other in a run of a plan: of its configuration with all
 * other keys at their defaults, in float32.
 */
public final class PlanTraffic {
    private PlanTraffic() {}

    /**
     * Returns the bytes in a training step, by use; entry r is rank r's.
     *
     * @param design of the model whose sizes were planned
     * @param tuning what of it is trained
     * @throws IllegalArgumentException if no run can be cut like this, or its tensors are too large
     *     for one
     */
    public static List<StepTraffic> of(
            PlanRequest request, Plan plan, ModelShape design, FineTuning tuning) {
        PlanChoice choice = plan.choice();
        var grid =
                new RankGrid(
                        choice.layout().pipeline(),
                        choice.layout().tensor(),
                        1,
                        choice.layout().data(),
                        choice.layout().shards());
        ZeroSettings zero = zero(choice);
        var trained = new TrainedParts(design, tuning);
        FrozenStages frozen = trained.frozen(StagePartition.given(design, plan.partition()));
        Schedule training = training(request, choice, zero, trained, frozen);
        var run =
                new RunPlan(
                        "planned",
                        "",
                        training,
                        training,
                        grid,
                        Map.of(),
                        new RunSteps(0, 1, 0, 0, 0, 0),
                        Timeouts.DEFAULT,
                        false,
                        zero.stage() == 0,
                        CollectiveForm.NEVER);
        GptSettings model =
                model(request, plan, onPlannedSequences(design, request), grid, zero)
                        .training(tuning);
        try {
            List<Integer> together = Collections.nCopies(grid.ranks(), 0);
            return new PlannedTraffic(run, model, together, together).ofAllRanks();
        } catch (ArithmeticException e) {
            throw new IllegalArgumentException(
                    "a rank would hold tensors of more than 2^31 elements, which runs do not support",
                    e);
        }
    }

    /**
     * Returns the settings that plans assume: blocks are gathered one by one, and gradients do not
     * pile up.
     */
    private static ZeroSettings zero(PlanChoice choice) {
        return new ZeroSettings(
                choice.zero().number(),
                choice.zero().dividesParameters()
                        ? ZeroSettings.Residency.LAYER
                        : ZeroSettings.OFF.residency(),
                ZeroSettings.OFF.prefetchLayers(),
                choice.zero().dividesGradients()
                        ? ZeroSettings.Reduction.PER_MICRO_BATCH
                        : ZeroSettings.Reduction.PER_STEP,
                Optional.empty());
    }

    private static Schedule training(
            PlanRequest request,
            PlanChoice choice,
            ZeroSettings zero,
            TrainedParts trained,
            FrozenStages frozen) {
        int last = choice.stages() - 1;
        boolean shares = request.model().tied() && last > 0 && trained.headMatrix();
        LoweringOptions options =
                zero.lowering(
                        LoweringOptions.plain()
                                .withFrozen(frozen)
                                .withSharedGroups(shares ? List.of(List.of(0, last)) : List.of()),
                        choice.layout().data(),
                        1);
        var shape =
                new PipelineShape(
                        choice.layout().pipeline(),
                        choice.chunks(),
                        choice.microBatches(),
                        choice.sliceLengths());
        return Lowering.lower(
                Generators.generate(choice.kind(), shape),
                choice.recompute() ? options.withRecompute() : options);
    }

    /** Returns the model with places for sequences that may be longer than its own. */
    private static ModelShape onPlannedSequences(ModelShape design, PlanRequest request) {
        int tokens = request.model().sequence();
        Positions places =
                switch (design.positions()) {
                    case Positions.Learned _ -> new Positions.Learned(request.model().places());
                    case Positions.Rotary turned ->
                            new Positions.Rotary(
                                    Math.max(turned.most(), tokens),
                                    turned.theta(),
                                    turned.stretch());
                };
        return new ModelShape(
                design.vocabulary(),
                tokens,
                design.width(),
                design.layers(),
                design.block(),
                places,
                design.tied());
    }

    private static GptSettings model(
            PlanRequest request, Plan plan, ModelShape shape, RankGrid grid, ZeroSettings zero) {
        PlanChoice choice = plan.choice();
        var batch =
                new BatchShape(
                        request.batch() / choice.layout().data() / choice.microBatches(),
                        choice.microBatches(),
                        choice.sliceLengths(),
                        DeviceSection.REDUCTION_BLOCK);
        return GptSettings.of(
                        shape,
                        StagePartition.given(shape, plan.partition()),
                        batch,
                        Precision.FLOAT32,
                        ConfiguredModel.anyOptimizer(),
                        0)
                .onGrid(grid, zero);
    }
}
