package dev.penstock.runtime.model.shape;

import dev.penstock.schedules.lower.GatherSettings;
import dev.penstock.schedules.lower.GradientReduction;
import dev.penstock.schedules.lower.LoweringOptions;
import dev.penstock.schedules.lower.ParameterResidency;
import java.nio.file.Path;
import java.util.Optional;

/**
 * The state that replicas of a stage divide among themselves instead of each holding all of it
 * (ZeRO, arXiv 1910.02054).
 *
 * @param stage 0: nothing; 1: the optimizer's moments; 2: gradients too; 3: parameters too
 * @param residency how long gathered parameters stay (stage 3)
 * @param prefetchLayers how many layers ahead of the current one are gathered (stage 3)
 * @param reduction when gradients are summed; per micro-batch only where they are divided
 * @param offload where moments and the rank's own parts of parameters lie instead of in the
 *     device's memory
 * @param swap where all parameters, gradients and moments lie instead, of which a stage at a time
 *     and the next one are in memory; nothing is divided then
 */
public record ZeroSettings(
        int stage,
        Residency residency,
        int prefetchLayers,
        Reduction reduction,
        Optional<Path> offload,
        Optional<SwapSettings> swap) {
    /** Nothing divided. */
    public static final ZeroSettings OFF = new ZeroSettings(0, Residency.PASS, 1);

    /** The event until which gathered parameters stay. */
    public enum Residency {
        /** Until the layer has run. */
        LAYER,
        /** Until the consecutive ops of a micro-batch have run. */
        MICRO_BATCH,
        /** Until the rank turns to another stage. */
        PASS,
        /** Until the stage has run its last op of the step. */
        STEP
    }

    /** The time at which replicas sum their gradients. */
    public enum Reduction {
        PER_STEP,
        PER_MICRO_BATCH
    }

    public ZeroSettings {
        if (stage < 0 || stage > 3 || prefetchLayers < 0) {
            throw new IllegalArgumentException(
                    "expected a ZeRO stage of 0 to 3 and a prefetch of 0 or more layers, got stage %d, %d layers"
                            .formatted(stage, prefetchLayers));
        }
        if (reduction == Reduction.PER_MICRO_BATCH && stage < 2) {
            throw new IllegalArgumentException(
                    "gradients that are summed per micro-batch need ZeRO stage 2 or 3, got %d; sum them per step"
                            .formatted(stage));
        }
    }

    /** Settings of which nothing is swapped. */
    public ZeroSettings(
            int stage,
            Residency residency,
            int prefetchLayers,
            Reduction reduction,
            Optional<Path> offload) {
        this(stage, residency, prefetchLayers, reduction, offload, Optional.empty());
    }

    /** Settings that sum gradients once per step and keep everything in the device's memory. */
    public ZeroSettings(int stage, Residency residency, int prefetchLayers) {
        this(stage, residency, prefetchLayers, Reduction.PER_STEP, Optional.empty());
    }

    /** Returns these settings with moments and own parts of parameters in files of a folder. */
    public ZeroSettings offloadedTo(Path folder) {
        return new ZeroSettings(stage, residency, prefetchLayers, reduction, Optional.of(folder));
    }

    /** Returns settings that divide nothing and swap everything. */
    public static ZeroSettings swapped(SwapSettings swap) {
        return new ZeroSettings(
                0, Residency.PASS, 1, Reduction.PER_STEP, Optional.empty(), Optional.of(swap));
    }

    /** Returns these settings with gradients summed at another time. */
    public ZeroSettings reducing(Reduction when) {
        return new ZeroSettings(stage, residency, prefetchLayers, when, offload);
    }

    /**
     * Adds to an order the ops that this number of replicas needs. Stages 1 and 2 gather the
     * parameters as updated by the last step at the beginning of every pass. What is swapped is
     * loaded while the stage before it computes, and its gradients leave as soon as they are
     * complete.
     *
     * @param visit computations of a stage that follow each other in a pass
     */
    public LoweringOptions lowering(LoweringOptions options, int replicas, int visit) {
        if (swap.isPresent()) {
            return options.withReduction(GradientReduction.PER_STEP)
                    .withGathers(new GatherSettings(ParameterResidency.PER_PASS, visit));
        }
        if (replicas == 1 && offload.isEmpty()) {
            return options;
        }
        LoweringOptions reducing = replicas == 1 ? options : summed(options);
        return switch (stage) {
            case 0 -> reducing;
            case 1, 2 -> reducing.withGathers(new GatherSettings(ParameterResidency.PER_STEP, 0));
            default ->
                    residency == Residency.LAYER
                            ? reducing
                            : reducing.withGathers(
                                    new GatherSettings(stays(), Math.min(1, prefetchLayers)));
        };
    }

    private LoweringOptions summed(LoweringOptions options) {
        return options.withReduction(
                switch (reduction) {
                    case PER_STEP -> GradientReduction.PER_STEP;
                    case PER_MICRO_BATCH -> GradientReduction.PER_MICRO_BATCH;
                });
    }

    private ParameterResidency stays() {
        return switch (residency) {
            case LAYER -> ParameterResidency.PER_OP;
            case MICRO_BATCH -> ParameterResidency.PER_MICRO_BATCH;
            case PASS -> ParameterResidency.PER_PASS;
            case STEP -> ParameterResidency.PER_STEP;
        };
    }
}
