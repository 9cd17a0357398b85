package dev.penstock.runtime.config.run;

import dev.penstock.runtime.config.reading.Conflict;
import dev.penstock.runtime.model.shape.GradientSum;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Finds what does not fit replicas that take steps alone: {@code parallel.outer}. */
final class OuterChecks {
    private static final String EVERY = "parallel.outer.every";

    private final RunConfig config;
    private final ParallelSection parallel;
    private final List<Conflict> conflicts = new ArrayList<>();

    private OuterChecks(RunConfig config) {
        this.config = config;
        this.parallel = config.parallel();
    }

    static List<Conflict> of(RunConfig config) {
        var checks = new OuterChecks(config);
        config.parallel().outerEvery().ifPresent(checks::check);
        return checks.conflicts;
    }

    private void check(int every) {
        turnsFit(every);
        replicasAreSeveralAndWhole(every);
        require(
                config.optimizer().gradientSum() == GradientSum.FLOAT32,
                "float32 where replicas take steps alone: each sums what it computes itself",
                "fixed-point",
                "leave it out",
                "optimizer.gradient-sum",
                EVERY);
        require(
                !config.recovery().mirror(),
                "false where replicas take steps alone: mirrors do not have what they exchange",
                true,
                "without mirrors a run goes on from a checkpoint, which has it",
                "recovery.mirror",
                EVERY);
    }

    private void turnsFit(int every) {
        int fragments = parallel.outerFragments();
        int most = Math.min(every, config.model().layers());
        require(
                fragments <= most,
                "at most as many as there are steps between two exchanges (%s = %d) and layers (%d)"
                        .formatted(EVERY, every, config.model().layers()),
                fragments,
                "try " + most,
                "parallel.outer.fragments",
                EVERY,
                "model.layers");
        int between = every / Math.min(fragments, most);
        require(
                parallel.outerLag() < between,
                "less than the %d steps from one fragment's turn to the next one's"
                        .formatted(between),
                parallel.outerLag(),
                between == 1 ? "try 0, or more steps between exchanges" : "try " + (between - 1),
                "parallel.outer.lag",
                EVERY,
                "parallel.outer.fragments");
    }

    private void replicasAreSeveralAndWhole(int every) {
        require(
                parallel.data() > 1,
                "none where there is one replica (parallel.data = 1)",
                every,
                "use replicas, such as parallel.data = 2",
                EVERY,
                "parallel.data");
        require(
                parallel.context() == 1,
                "1 where replicas take steps alone: parts of a sequence have to sum in every step",
                parallel.context(),
                "use more replicas instead: parallel.data",
                "parallel.context",
                EVERY);
        require(
                parallel.zeroStage() == 0,
                "0 where replicas take steps alone: they hold nothing in common to divide",
                parallel.zeroStage(),
                "try parallel.zero.stage = 0",
                "parallel.zero.stage",
                EVERY);
        require(
                parallel.zeroOffload().isEmpty(),
                "none where replicas take steps alone",
                parallel.zeroOffload().map(Path::toString).orElse("none"),
                "leave it out",
                "parallel.zero.offload",
                EVERY);
    }

    private void require(
            boolean holds, String expected, Object got, String advice, String... keys) {
        if (!holds) {
            conflicts.add(new Conflict(List.of(keys), expected, got.toString(), advice));
        }
    }
}
