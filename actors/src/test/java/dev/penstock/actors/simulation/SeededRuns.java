package dev.penstock.actors.simulation;

import dev.penstock.actors.spi.RunOutcome;
import java.util.HashMap;
import java.util.Map;
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
        return run.checks.seen;
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
                return Optional.of("seed %d: %s".formatted(seed, e.getCause()));
            }
        }
        return Optional.empty();
    }
}
