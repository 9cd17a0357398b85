package dev.penstock.actors.simulation;

import dev.penstock.actors.spi.RunOutcome;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;

/** Runs of scenarios that seeds draw, each compared with the same run undisturbed. */
final class SeededRuns {
    private final Map<Scenario, Truth> truths = new HashMap<>();

    Simulation of(long seed) {
        Scenario scenario = Scenario.of(seed);
        Truth truth = truths.computeIfAbsent(scenario.undisturbed(), SeededRuns::truth);
        try {
            return new Simulation(scenario, seed, truth).run();
        } catch (RuntimeException | Error e) {
            throw new AssertionError("seed %d (-Dsimulation.seed=%d)".formatted(seed, seed), e);
        }
    }

    static Truth truth(Scenario undisturbed) {
        Simulation run = new Simulation(undisturbed, 1, null).run();
        if (!run.world.violations().isEmpty() || !(run.outcome() instanceof RunOutcome.Completed)) {
            throw new AssertionError(
                    run.outcome() + " " + run.world.violations() + "\n" + run.world.trace());
        }
        Truth seen = run.checks.seen;
        Truth closedForm = ClosedForm.of(undisturbed);
        requireEqual(closedForm.losses, seen.losses, undisturbed);
        requireEqual(closedForm.heldOut, seen.heldOut, undisturbed);
        return seen;
    }

    private static void requireEqual(
            Map<Long, Double> expected, Map<Long, Double> seen, Scenario undisturbed) {
        seen.forEach(
                (step, loss) -> {
                    double right = Objects.requireNonNull(expected.get(step));
                    if (Math.abs(loss - right) > 1e-5 * Math.max(1, Math.abs(right))) {
                        throw new AssertionError(
                                "%s: loss of step %d is %s, the closed form %s"
                                        .formatted(undisturbed, step, loss, right));
                    }
                });
    }

    /**
     * Returns the first of these seeds whose run violates something or breaks off, with what it
     * violates.
     */
    static Optional<String> firstFailure(long first, long end) {
        var runs = new SeededRuns();
        for (long seed = first; seed < end; seed++) {
            try {
                var violations = runs.of(seed).world.violations();
                if (!violations.isEmpty()) {
                    return Optional.of("seed %d: %s".formatted(seed, violations));
                }
            } catch (AssertionError e) {
                return Optional.of(
                        "seed %d: %s".formatted(seed, Objects.requireNonNullElse(e.getCause(), e)));
            }
        }
        return Optional.empty();
    }
}
