package dev.penstock.schedules.plan;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.plan.work.Layout;
import dev.penstock.schedules.plan.work.PlanChoice;
import dev.penstock.schedules.plan.work.RankMemory;
import dev.penstock.schedules.plan.work.ZeroStage;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class RefusalsTest {
    private static Refusal refusal(String kind, long leastNanos, long excess) {
        var choice =
                new PlanChoice(new Layout(2, 1, 1), ZeroStage.NONE, kind, 1, 8, List.of(20), false);
        return new Refusal(choice, new RankMemory(0, 100 + excess, 0, 0, 100), "x", leastNanos);
    }

    private static Refusals of(List<Refusal> all) {
        var refusals = new Refusals();
        all.forEach(refusals::add);
        return refusals;
    }

    /** As if everything were kept. */
    @Test
    void ofEachKindTheFasterOneThatIsMissingLeast() {
        Random random = new Random(7);
        for (int round = 0; round < 200; round++) {
            List<Refusal> all = new ArrayList<>();
            for (int i = 0; i < 12; i++) {
                String kind = List.of("1f1b", "gpipe", "zbv").get(random.nextInt(3));
                all.add(refusal(kind, random.nextInt(10), random.nextInt(10)));
            }
            int step = random.nextInt(12);

            List<Long> missing =
                    of(all).fasterThan(step).stream().map(r -> r.memory().excess()).toList();

            List<Long> expected = new ArrayList<>();
            for (String kind : List.of("1f1b", "gpipe", "zbv")) {
                all.stream()
                        .filter(r -> r.choice().kind().equals(kind) && r.leastNanos() < step)
                        .map(r -> r.memory().excess())
                        .min(Comparator.naturalOrder())
                        .ifPresent(expected::add);
            }
            assertThat(missing).isEqualTo(expected.stream().sorted().toList());
        }
    }

    @Test
    void amongEqualsTheSimplerKindComesFirst() {
        assertThat(of(List.of(refusal("zbv", 1, 5), refusal("1f1b", 2, 5))).fasterThan(3))
                .extracting(r -> r.choice().kind())
                .containsExactly("1f1b", "zbv");
    }

    /** One of every kind of difference, starting with the simplest. */
    @Test
    void choicesAreOrderedFromTheSimplest() {
        List<Integer> whole = List.of(20);
        List<Integer> halves = List.of(10, 10);
        List<PlanChoice> simplerFirst =
                List.of(
                        new PlanChoice(
                                new Layout(1, 4, 1), ZeroStage.NONE, "1f1b", 1, 8, whole, false),
                        new PlanChoice(
                                new Layout(2, 1, 2), ZeroStage.NONE, "1f1b", 1, 8, whole, false),
                        new PlanChoice(
                                new Layout(2, 2, 1), ZeroStage.NONE, "1f1b", 1, 4, whole, false),
                        new PlanChoice(
                                new Layout(2, 2, 1), ZeroStage.NONE, "1f1b", 1, 8, whole, false),
                        new PlanChoice(
                                new Layout(2, 2, 1), ZeroStage.NONE, "gpipe", 1, 8, whole, false),
                        new PlanChoice(
                                new Layout(2, 2, 1), ZeroStage.NONE, "1f1b", 1, 4, whole, true),
                        new PlanChoice(
                                new Layout(2, 2, 1), ZeroStage.NONE, "1f1b", 1, 4, halves, false),
                        new PlanChoice(
                                new Layout(2, 2, 1), ZeroStage.NONE, "1f1b", 2, 4, whole, false),
                        new PlanChoice(
                                new Layout(1, 2, 2),
                                ZeroStage.GRADIENTS,
                                "1f1b",
                                1,
                                4,
                                whole,
                                false),
                        new PlanChoice(
                                new Layout(1, 1, 5), ZeroStage.NONE, "1f1b", 1, 4, whole, false));

        assertThat(simplerFirst).isSortedAccordingTo(ChoiceOrder.SIMPLER_FIRST);
        for (int i = 1; i < simplerFirst.size(); i++) {
            assertThat(
                            ChoiceOrder.SIMPLER_FIRST.compare(
                                    simplerFirst.get(i - 1), simplerFirst.get(i)))
                    .isNegative();
        }
    }
}
