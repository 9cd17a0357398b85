package dev.penstock.schedules.plan.swap;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.generate.base.GenerateOptions;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.GatherSettings;
import dev.penstock.schedules.lower.GradientReduction;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.lower.LoweringOptions;
import dev.penstock.schedules.lower.ParameterResidency;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.simulate.UnitCosts;
import dev.penstock.schedules.validate.Conditions;
import dev.penstock.schedules.validate.ScheduleValidator;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import org.junit.jupiter.api.Test;

class SwapCutsTest {
    private static final int SEGMENTS = 6;

    @Test
    void cutsAreAsGoodAsTheBestOfAll() {
        var random = new Random(22);
        for (int round = 0; round < 200; round++) {
            List<SwapPart> parts = new ArrayList<>();
            int n = 2 + random.nextInt(7);
            for (int i = 0; i < n; i++) {
                double forward = random.nextInt(10);
                long bytes = 1L + random.nextInt(20);
                parts.add(new SwapPart(bytes, forward, 2 * forward, bytes * 0.7));
            }
            var step = new SwapStep(1 + random.nextInt(6));
            int segments = 2 + random.nextInt(n - 1);
            long room = random.nextBoolean() ? Long.MAX_VALUE : 40;

            Optional<List<Integer>> cut = new SwapCuts(parts, step, room).into(segments);

            Optional<Double> least =
                    all(n, segments).stream()
                            .map(sizes -> segments(parts, sizes))
                            .filter(each -> fits(each, room))
                            .map(step::time)
                            .min(Double::compare);
            assertThat(cut.isPresent()).isEqualTo(least.isPresent());
            if (cut.isPresent()) {
                assertThat(cut.get()).hasSize(segments);
                assertThat(step.time(segments(parts, cut.get())))
                        .isCloseTo(least.orElseThrow(), within(1e-9));
            }
        }
    }

    /** Three equal segments of load 5 and forward 2: the third micro-batch hides the load. */
    @Test
    void enoughMicroBatchesHideTheLoads() {
        SwapPart part = new SwapPart(5, 2, 4, 5);
        List<SwapPart> segments = List.of(part, part, part);

        assertThat(SwapStep.enough(segments)).isEqualTo(3);
        assertThat(new SwapStep(1).time(segments)).isEqualTo(5 + (5 + 5 + 2) + (10 + 10 + 5));
        assertThat(new SwapStep(3).time(segments)).isEqualTo(5 + 3 * (6 + 12));
        assertThat(SwapStep.enough(List.of(part, new SwapPart(40, 1, 2, 40)))).isEqualTo(20);
    }

    /** As gathers and reductions of a breadth-first order: within a load, whatever binds. */
    @Test
    void theSimulatorAgreesWithTheFormula() {
        for (int microBatches : List.of(1, 2, 3, 4, 8)) {
            double formula =
                    new SwapStep(microBatches)
                            .time(Collections.nCopies(SEGMENTS, new SwapPart(1, 20, 40, 50)));

            assertThat((double) simulated(microBatches, 50)).isCloseTo(formula, within(50.0));
        }
    }

    /** The truth is the first micro-batch from which on the simulated step is fast enough. */
    @Test
    void theShareOfAModelInMemoryIsReachedWhereTheSimulatorReachesIt() {
        List<SwapPart> segments = Collections.nCopies(SEGMENTS, new SwapPart(1, 20, 40, 50));
        for (int update : List.of(0, 600, 3_600)) {
            int found = SwapStep.reaching(segments, update, 0.85);

            assertThat(found).as("update of %d", update).isGreaterThan(1);
            assertThat(share(found + 1, update)).isGreaterThanOrEqualTo(0.85);
            assertThat(share(found - 1, update)).isLessThan(0.85);
        }
        assertThat(SwapStep.reaching(segments, 3_600, 0.85)).isEqualTo(58);
    }

    private static double share(int microBatches, long update) {
        return simulated(microBatches, 0) / (double) (simulated(microBatches, 50) + update);
    }

    /** Of a breadth-first order of one rank, forward 20 and backward 40 of a micro-batch. */
    private static long simulated(int microBatches, int load) {
        Schedule order =
                Lowering.lower(
                        Generators.generate(
                                "breadth-first",
                                new PipelineShape(1, SEGMENTS, microBatches, List.of(1)),
                                GenerateOptions.defaults()),
                        LoweringOptions.plain()
                                .withSharedGroups(List.of(List.of(0, SEGMENTS - 1)))
                                .withReduction(GradientReduction.PER_STEP)
                                .withGathers(
                                        new GatherSettings(
                                                ParameterResidency.PER_PASS, microBatches)));
        ScheduleValidator.validate(order, Conditions.training().withReplicas()).orThrow();
        String costs = "forward=20,backward=40,gather=%d,reduce=%d".formatted(load, load);
        return ScheduleSimulator.simulate(order, UnitCosts.parse(costs)).makespanNanos();
    }

    private static boolean fits(List<SwapPart> segments, long room) {
        for (int i = 0; i + 1 < segments.size(); i++) {
            long one = segments.get(i).bytes();
            long two = segments.get(i + 1).bytes();
            if (one + two + Math.max(one, two) > room) {
                return false;
            }
        }
        return true;
    }

    private static List<SwapPart> segments(List<SwapPart> parts, List<Integer> sizes) {
        List<SwapPart> segments = new ArrayList<>();
        int from = 0;
        for (int size : sizes) {
            segments.add(SwapPart.together(parts.subList(from, from + size)));
            from += size;
        }
        return segments;
    }

    private static List<List<Integer>> all(int parts, int segments) {
        if (segments == 1) {
            return List.of(List.of(parts));
        }
        List<List<Integer>> all = new ArrayList<>();
        for (int first = 1; first <= parts - segments + 1; first++) {
            for (List<Integer> rest : all(parts - first, segments - 1)) {
                List<Integer> sizes = new ArrayList<>(List.of(first));
                sizes.addAll(rest);
                all.add(sizes);
            }
        }
        return all;
    }
}
