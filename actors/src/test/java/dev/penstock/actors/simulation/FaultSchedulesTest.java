package dev.penstock.actors.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.spi.RunOutcome;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Predicate;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Thousands of runs under random faults, in virtual time. {@code -Dsimulation.schedules=100000}
 * runs more of them, {@code -Dsimulation.seed=17} only one, with its trace, of which {@code
 * -Dsimulation.lines=4000} keeps more.
 */
@ExtendWith(QuietLog.class)
class FaultSchedulesTest {
    private static final int SCHEDULES = Integer.getInteger("simulation.schedules", 5_000);
    private static final long ONE_SEED = Long.getLong("simulation.seed", -1);
    private static final int ENOUGH_FAILURES = 5;

    private final SeededRuns runs = new SeededRuns();

    @Test
    void noFaultChangesAStepOrLosesOneOrHangs() {
        noFaultHurts(0);
    }

    /** Replicas that do each other's work, and go on without ranks that died. */
    @Test
    void noFaultHurtsARunThatGoesOnWithoutRanks() {
        assertThat(noFaultHurts(Scenario.WIRED)).isPositive();
    }

    /** Returns how many of the runs went on without a rank. */
    private int noFaultHurts(long from) {
        int degraded = 0;
        List<String> failures = new ArrayList<>();
        Map<String, Integer> counts = new TreeMap<>();
        long first = ONE_SEED >= 0 ? ONE_SEED : from;
        long last = ONE_SEED >= 0 ? ONE_SEED + 1 : from + (from == 0 ? SCHEDULES : SCHEDULES / 4);
        int recoveries = 0;
        for (long seed = first; seed < last && failures.size() < ENOUGH_FAILURES; seed++) {
            Simulation run = runs.of(seed);
            if (!run.world.violations().isEmpty() || ONE_SEED >= 0) {
                failures.add(
                        "seed %d (-Dsimulation.seed=%d): %s%n%s%n%s"
                                .formatted(
                                        seed,
                                        seed,
                                        run.world.violations(),
                                        run.scenario,
                                        run.world.trace()));
            }
            degraded += run.checks.wasDegraded() ? 1 : 0;
            recoveries += run.checks.recoveries();
            RunOutcome outcome = run.outcome();
            counts.merge(
                    outcome == null ? "none" : outcome.getClass().getSimpleName(), 1, Integer::sum);
        }
        assertThat(failures.stream().map(each -> each.lines().limit(2).toList()))
                .as(
                        "%s, %d recoveries; the first: %s",
                        counts, recoveries, failures.stream().findFirst().orElse(""))
                .isEmpty();
        return degraded;
    }

    /** Of every run that others are compared with, this is required anyway: here, of each kind. */
    @Test
    void theUndisturbedRunIsTheClosedForm() {
        Predicate<Scenario> plain = drawn -> drawn.grid().isPipelineAlone();
        for (Predicate<Scenario> wanted :
                List.<Predicate<Scenario>>of(
                        plain.and(drawn -> drawn.kind().equals("1f1b")),
                        plain.and(drawn -> drawn.kind().equals("zb-h1")),
                        plain.and(drawn -> drawn.slices() > 1),
                        drawn -> drawn.grid().tensor() > 1,
                        drawn -> drawn.grid().context() > 2,
                        drawn -> drawn.grid().context() > 1 && drawn.slices() > 1,
                        drawn -> drawn.every() > 0 && drawn.lag() == 0,
                        drawn -> drawn.lag() > 0,
                        Scenario::sharded)) {
            Scenario scenario =
                    LongStream.iterate(0, seed -> seed + 1)
                            .mapToObj(Scenario::of)
                            .filter(wanted)
                            .findFirst()
                            .orElseThrow()
                            .undisturbed();

            Truth seen = SeededRuns.truth(scenario);

            assertThat(seen.losses.keySet()).isEqualTo(ClosedForm.of(scenario).losses.keySet());
        }
    }

    @Test
    void aSeedRepeatsItsRun() {
        assertThat(runs.of(7).world.trace()).isEqualTo(runs.of(7).world.trace());
    }
}
