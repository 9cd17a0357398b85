package dev.penstock.runtime.cli.schedule;

import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.BackwardParts;
import dev.penstock.schedules.lower.GatherSettings;
import dev.penstock.schedules.lower.GradientReduction;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.lower.LoweringOptions;
import dev.penstock.schedules.lower.OffloadSettings;
import dev.penstock.schedules.lower.ParameterResidency;

import org.jspecify.annotations.Nullable;

import picocli.CommandLine.Option;

import java.util.Locale;
import java.util.Set;

/** What a run adds to the computations of an order: a flag per lowering pass. */
final class LoweringArguments {
    /** How long gathered parameters stay, as {@link ParameterResidency}. */
    enum Gathers {
        PER_OP,
        PER_MICRO_BATCH,
        PER_PASS,
        PER_STEP;

        @Override
        public String toString() {
            return word(this);
        }
    }

    /** When replicas sum their gradients, as {@link GradientReduction}. */
    enum Reduce {
        PER_STEP,
        PER_MICRO_BATCH;

        @Override
        public String toString() {
            return word(this);
        }
    }

    /** Which activations are computed a second time. */
    enum Recompute {
        NONE,
        FULL
    }

    /** Whose activations leave the device between forward and backward. */
    enum Offload {
        NONE,
        ALL
    }

    /** As many as a configuration's model may have. */
    private static final int MOST_LAYERS = 10_000;

    @Option(
            names = "--gathers",
            paramLabel = "STAY",
            description = {
                "Gather and release parameters that replicas divide (ZeRO-3), for so long:",
                "per-op, per-micro-batch, per-pass or per-step."
            })
    private @Nullable Gathers gathers;

    @Option(
            names = "--look-ahead",
            paramLabel = "K",
            description = "Gather so many computations ahead (default: 1).")
    private @Nullable Integer lookAhead;

    @Option(
            names = "--layers",
            paramLabel = "N",
            description = "Gather the N layers of a stage one by one (default: all at once).")
    private @Nullable Integer layers;

    @Option(
            names = "--reduce",
            paramLabel = "WHEN",
            description = "Sum the gradients of replicas: per-step or per-micro-batch.")
    private @Nullable Reduce reduce;

    @Option(
            names = "--recompute",
            paramLabel = "WHAT",
            description = "Activations computed a second time: none or full (default: none).")
    private Recompute recompute = Recompute.NONE;

    @Option(
            names = "--offload",
            paramLabel = "WHAT",
            description = {
                "Activations that go to the host between forward and backward: none or all",
                "(default: none)."
            })
    private Offload offload = Offload.NONE;

    @Option(
            names = "--reload-ahead",
            paramLabel = "K",
            description = "Bring them back so many computations ahead (default: 1).")
    private @Nullable Integer reloadAhead;

    @Option(names = "--split-backward", description = "Every backward in two ops, I and W.")
    private boolean split;

    @Option(names = "--merge-backward", description = "I and W that stand together as one op.")
    private boolean merge;

    /**
     * @throws BadInputException with everything that does not go together
     */
    LoweringOptions options() {
        var problems = new OptionProblems();
        check(problems);
        problems.orThrow();
        LoweringOptions options = LoweringOptions.plain();
        if (split || merge) {
            options = options.withBackward(split ? BackwardParts.SPLIT : BackwardParts.MERGED);
        }
        if (recompute == Recompute.FULL) {
            options = options.withRecompute();
        }
        if (offload == Offload.ALL) {
            options =
                    options.withOffload(
                            new OffloadSettings(Set.of(), reloadAhead == null ? 1 : reloadAhead));
        }
        if (gathers != null) {
            var settings =
                    new GatherSettings(residency(gathers), lookAhead == null ? 1 : lookAhead);
            options = options.withGathers(layers == null ? settings : settings.byLayer(layers));
        }
        return reduce == null ? options : options.withReduction(reduction(reduce));
    }

    /** Whether nothing is asked for. */
    boolean isPlain() {
        return !addsOps() && recompute == Recompute.NONE && !split && !merge;
    }

    /** Whether ops are asked for that an order of computations alone has not. */
    boolean addsOps() {
        return gathers != null || reduce != null || offload == Offload.ALL;
    }

    /**
     * The order with what was asked for: computations alone stay so, unless it takes more; then
     * they get their transfers too.
     */
    Schedule applied(GivenOrder given) {
        return addsOps()
                ? lowered(given)
                : Lowering.computations(given.order(), options().withFrozen(given.frozen()));
    }

    /**
     * Same as {@link #applied}; where nothing was asked for, a configuration's order as it is run.
     */
    Schedule asRun(GivenOrder given) {
        return isPlain() && given.loaded().isPresent()
                ? given.configured().training(given.loaded().get())
                : applied(given);
    }

    /** The order with what was asked for, its transfers included. */
    Schedule lowered(GivenOrder given) {
        return lowered(given, null);
    }

    /** The same with receives early enough for so many buffers. */
    Schedule lowered(GivenOrder given, @Nullable Integer buffers) {
        LoweringOptions options =
                options().withSharedGroups(given.sharedGroups()).withFrozen(given.frozen());
        try {
            return Lowering.lower(
                    given.order(), buffers == null ? options : options.withCapacity(buffers));
        } catch (IllegalArgumentException e) {
            throw new BadInputException(String.valueOf(e.getMessage()));
        }
    }

    /** What does not go together, or makes no sense. */
    void check(OptionProblems problems) {
        if (split && merge) {
            problems.add("expected --split-backward or --merge-backward, got both");
        }
        if (reloadAhead != null && offload == Offload.NONE) {
            problems.add("expected --offload beside --reload-ahead; try --offload all");
        }
        problems.count("--reload-ahead", reloadAhead, 0, OptionProblems.MOST);
        requireWithGathers(problems, "--look-ahead", lookAhead, 0, OptionProblems.MOST);
        requireWithGathers(problems, "--layers", layers, 1, MOST_LAYERS);
    }

    private void requireWithGathers(
            OptionProblems problems, String option, @Nullable Integer value, int least, int most) {
        if (value != null && gathers == null) {
            problems.add("expected --gathers beside %s; try --gathers per-pass".formatted(option));
        }
        problems.count(option, value, least, most);
    }

    /** What users call it: {@code per-pass}. */
    private static String word(Enum<?> value) {
        return value.name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    private static ParameterResidency residency(Gathers stay) {
        return switch (stay) {
            case PER_OP -> ParameterResidency.PER_OP;
            case PER_MICRO_BATCH -> ParameterResidency.PER_MICRO_BATCH;
            case PER_PASS -> ParameterResidency.PER_PASS;
            case PER_STEP -> ParameterResidency.PER_STEP;
        };
    }

    private static GradientReduction reduction(Reduce when) {
        return switch (when) {
            case PER_STEP -> GradientReduction.PER_STEP;
            case PER_MICRO_BATCH -> GradientReduction.PER_MICRO_BATCH;
        };
    }
}
