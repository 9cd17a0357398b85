package dev.penstock.schedules.plan;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.plan.work.ModelShape;
import dev.penstock.schedules.plan.work.PlanRequest;
import dev.penstock.schedules.plan.work.TrainingBytes;
import org.junit.jupiter.api.Test;

class PlannerScaleTest {
    /** It takes seconds because few of the choices have to be simulated. */
    @Test
    void plansATrillionParametersOn3072GpusBySimulatingOneChoiceInFiveHundred() {
        var model = new ModelShape(128, 25_600, 160, 51_200, 2_048, true);
        var request = new PlanRequest(model, TrainingBytes.MIXED, Clusters.a100(384), 3_072);

        PlanReport report = Planner.plan(request, 1);

        assertThat(report.bounded()).isGreaterThan(50_000);
        assertThat(report.proved()).isLessThan(report.bounded() / 500);
        assertThat(report.leastOpenNanos()).isEmpty();
        Plan winner = report.winner().orElseThrow();
        assertThat(winner.choice().layout().devices()).isEqualTo(3_072);
        assertThat(winner.memory()).allMatch(rank -> rank.excess() <= 0);
        // no faster than all FLOPs at the devices' rate; attention's causal half counts, 0.7 %
        double flops = 0.75 * PtdpFormulas.flopsPerIteration(3_072, 128, 25_600, 51_200, 2_048);
        double least = PtdpFormulas.secondsPerIteration(flops, 3_072, 312e12 * 0.55);
        assertThat(winner.stepNanos() / 1e9).isBetween(0.98 * least, 1.2 * least);
    }
}
