package dev.penstock.actors.simulation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.StepKind;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
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
        List<String> failures = new ArrayList<>();
        Map<String, Integer> counts = new TreeMap<>();
        long first = ONE_SEED >= 0 ? ONE_SEED : 0;
        long last = ONE_SEED >= 0 ? ONE_SEED + 1 : SCHEDULES;
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
    }

    @Test
    void theUndisturbedRunIsTheClosedForm() {
        Scenario scenario =
                LongStream.iterate(3, seed -> seed + 1)
                        .mapToObj(Scenario::of)
                        .filter(drawn -> drawn.grid().ranks() == drawn.grid().pipeline())
                        .findFirst()
                        .orElseThrow()
                        .undisturbed();
        Truth truth = SeededRuns.truth(scenario);

        double[] w = new double[scenario.grid().pipeline()];
        double[] m = new double[scenario.grid().pipeline()];
        for (int stage = 0; stage < w.length; stage++) {
            w[stage] = SimStage.firstWeight(stage);
        }
        for (long step = 1; step <= scenario.steps(); step++) {
            double loss = 0;
            for (int batch = 0; batch < Scenario.MICRO_BATCHES; batch++) {
                loss += SimStage.data(StepKind.TRAIN, step, 0, batch);
            }
            loss /= Scenario.MICRO_BATCHES;
            for (double each : w) {
                loss *= each;
            }
            assertThat(Objects.requireNonNull(truth.losses.get(step)))
                    .isCloseTo(loss, within(1e-5));
            double norm = 0;
            for (double each : w) {
                norm += loss / each * (loss / each);
            }
            double clip =
                    scenario.clipNorm() > 0
                            ? Math.min(1, scenario.clipNorm() / (Math.sqrt(norm) + 1e-6))
                            : 1;
            for (int stage = 0; stage < w.length; stage++) {
                m[stage] = 0.5 * m[stage] + clip * loss / w[stage];
            }
            for (int stage = 0; stage < w.length; stage++) {
                w[stage] -= SimStage.RATE * m[stage];
            }
        }
    }

    @Test
    void aSeedRepeatsItsRun() {
        assertThat(runs.of(7).world.trace()).isEqualTo(runs.of(7).world.trace());
    }
}
