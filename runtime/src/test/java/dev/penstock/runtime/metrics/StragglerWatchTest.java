package dev.penstock.runtime.metrics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.Lowering;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class StragglerWatchTest {
    private static final double[] SHARES = {1, 2, 2, 3};
    private static final int SLOW_RANK = 2;

    private record Told(int rank, long step, double factor) {}

    private final List<Told> told = new ArrayList<>();
    private final Random random = new Random(11);

    @Test
    void ranksOfDifferentWorkThatKeepUpAreNoStragglers() {
        StragglerWatch watch = watch(4);

        feed(watch, 1, 300, new double[] {1, 1, 1, 1}, 1);

        assertThat(told).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 4})
    void aRankThatIsSlowFromTheStartIsFoundWithin20Steps(int count) {
        StragglerWatch watch = watch(count);
        double[] slow = ones(count);
        slow[count - 1] = 3;

        feed(watch, 1, 100, slow, 1);

        assertThat(told).hasSize(1);
        assertThat(told.getFirst().rank()).isEqualTo(count - 1);
        assertThat(told.getFirst().step()).isLessThanOrEqualTo(20);
        assertThat(told.getFirst().factor()).isCloseTo(3, within(0.5));
    }

    @Test
    void aRankThatBecomesSlowIsFoundWithin20StepsAndAgainAfterItWasWell() {
        StragglerWatch watch = watch(4);
        double[] slow = ones(4);
        slow[SLOW_RANK] = 1.8;

        feed(watch, 1, 100, ones(4), 1);
        feed(watch, 101, 140, slow, 1);
        feed(watch, 141, 180, ones(4), 1);
        feed(watch, 181, 220, slow, 1);

        assertThat(told).extracting(Told::rank).containsExactly(SLOW_RANK, SLOW_RANK);
        assertThat(told.get(0).step()).isBetween(101L, 120L);
        assertThat(told.get(1).step()).isBetween(181L, 200L);
    }

    @Test
    void aBusyMachineSlowsAllAndMakesNoStraggler() {
        StragglerWatch watch = watch(4);

        feed(watch, 1, 50, ones(4), 1);
        feed(watch, 51, 100, ones(4), 4);

        assertThat(told).isEmpty();
    }

    @Test
    void aFewSlowStepsMakeNoStraggler() {
        StragglerWatch watch = watch(4);
        double[] slow = ones(4);
        slow[SLOW_RANK] = 10;

        feed(watch, 1, 30, ones(4), 1);
        feed(watch, 31, 34, slow, 1);
        feed(watch, 35, 60, ones(4), 1);

        assertThat(told).isEmpty();
    }

    @Test
    void aStageWhoseOpsAreLessEfficientIsHeldToItsOwnPast() {
        StragglerWatch watch = watch(4);
        double[] inefficient = ones(4);
        inefficient[3] = 1.4;
        double[] somewhatSlower = ones(4);
        somewhatSlower[3] = 1.8;

        feed(watch, 1, 100, inefficient, 1);
        feed(watch, 101, 200, somewhatSlower, 1);

        assertThat(told).isEmpty();
    }

    /** Nobody can act on it. */
    @Test
    void aRankThatLosesLessThanFiveMillisecondsOfAStepIsNotReported() {
        StragglerWatch watch = watch(4);
        double[] slow = ones(4);
        slow[SLOW_RANK] = 3;

        feed(watch, 1, 100, slow, 0.1);

        assertThat(told).isEmpty();
    }

    @Test
    void aRankThatIsSlowNowAndThenIsReportedFiveTimes() {
        StragglerWatch watch = watch(4);
        double[] slow = ones(4);
        slow[SLOW_RANK] = 3;

        for (int time = 0; time < 10; time++) {
            feed(watch, 80 * time + 1, 80 * time + 40, ones(4), 1);
            feed(watch, 80 * time + 41, 80 * time + 80, slow, 1);
        }

        assertThat(told).hasSize(5);
    }

    @Test
    void aProcessThatReplacesAnotherMayTakeItsTimeAtFirst() {
        StragglerWatch watch = watch(4);
        double[] compiling = ones(4);
        compiling[SLOW_RANK] = 5;

        feed(watch, 1, 12, ones(4), 1);
        watch.onRecovery(replaced(SLOW_RANK));
        feed(watch, 13, 22, compiling, 1);
        feed(watch, 23, 60, ones(4), 1);
        assertThat(told).isEmpty();

        watch.onRecovery(replaced(SLOW_RANK));
        feed(watch, 61, 80, compiling, 1);
        assertThat(told)
                .singleElement()
                .satisfies(slow -> assertThat(slow.rank()).isEqualTo(SLOW_RANK));
    }

    private static RecoveryReport replaced(int rank) {
        return new RecoveryReport(
                "rank %d died".formatted(rank),
                2,
                List.of(rank),
                RecoveryReport.Restart.CHECKPOINT,
                1,
                1,
                0,
                12);
    }

    private static double[] ones(int count) {
        double[] ones = new double[count];
        Arrays.fill(ones, 1);
        return ones;
    }

    private StragglerWatch watch(int count) {
        return new StragglerWatch(
                schedule(count),
                RankGrid.pipeline(count),
                Arrays.copyOf(SHARES, count),
                new Listener());
    }

    private static Schedule schedule(int ranks) {
        return Lowering.lower(Generators.generate("1f1b", PipelineShape.of(ranks, 4, 1)));
    }

    /** Steps in which an op takes its rank's share times its slowness, with a tenth of noise. */
    private void feed(
            StragglerWatch watch, long first, long last, double[] slowness, double machine) {
        Schedule schedule = schedule(slowness.length);
        for (long step = first; step <= last; step++) {
            List<RankStep> ranks = new ArrayList<>();
            for (int rank = 0; rank < slowness.length; rank++) {
                double nanos = 1e6 * SHARES[rank] * slowness[rank] * machine;
                ranks.add(rank(rank, schedule.program(rank).ops(), nanos));
            }
            watch.onStep(new StepReport(step, 1, 1, 1, 0, 1, ranks));
        }
    }

    private RankStep rank(int rank, List<Op> ops, double opNanos) {
        long[] starts = new long[ops.size()];
        long[] ends = new long[ops.size()];
        long now = 0;
        for (int i = 0; i < ops.size(); i++) {
            starts[i] = now;
            now += (long) (opNanos * (1 + 0.1 * random.nextDouble()));
            ends[i] = now;
        }
        return RankSteps.of(rank, starts, ends, now, now + 1, 0, 0);
    }

    private final class Listener implements RunListener {
        @Override
        public void onStraggler(int rank, long step, double factor) {
            told.add(new Told(rank, step, factor));
        }
    }
}
