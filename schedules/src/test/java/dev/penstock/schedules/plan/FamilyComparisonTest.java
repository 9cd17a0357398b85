package dev.penstock.schedules.plan;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.lower.GatherSettings;
import dev.penstock.schedules.lower.GradientReduction;
import dev.penstock.schedules.lower.LoweringOptions;
import dev.penstock.schedules.lower.ParameterResidency;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class FamilyComparisonTest {
    private final FamilyComparison comparison =
            FamilyComparison.of(
                    new FamilyComparison.Work(
                            4,
                            8,
                            2,
                            List.of(1, 1),
                            new OpCosts(3, 4, 5, 0),
                            LoweringOptions.plain(),
                            0,
                            0));

    private FamilyComparison.Row row(String kind) {
        return row(comparison, kind);
    }

    private static FamilyComparison.Row row(FamilyComparison comparison, String kind) {
        return comparison.rows().stream()
                .filter(row -> row.kind().equals(kind))
                .findFirst()
                .orElseThrow();
    }

    @Test
    void everyKindRunsOrSaysWhyNot() {
        Stream<String> names =
                Stream.concat(
                        comparison.rows().stream().map(FamilyComparison.Row::kind),
                        comparison.refused().stream().map(FamilyComparison.Refusal::kind));

        assertThat(names).containsExactlyInAnyOrderElementsOf(Generators.kinds());
    }

    @Test
    void agreesWithClosedForms() {
        // (M + P - 1) (F + I + W), and with S slices (M S + P - 1) / S
        assertThat(row("gpipe").makespan()).isCloseTo(11 * 12, within(1e-9));
        assertThat(row("1f1b").makespan()).isCloseTo(11 * 12, within(1e-9));
        assertThat(row("1f1b").bubble()).isCloseTo(3.0 / 11, within(1e-9));
        assertThat(row("seq1f1b").makespan()).isCloseTo(19 * 6, within(1e-9));
        assertThat(row("gpipe").peakActivations()).isEqualTo(8);
        assertThat(row("1f1b").peakActivations()).isEqualTo(4);
        assertThat(row("seq1f1b").peakActivations()).isEqualTo(2.5);
    }

    @Test
    void whatLeavesARankIsCounted() {
        // 3 of 4 ranks send 8 activations, 3 send 8 gradients
        assertThat(row("1f1b").traffic()).isEqualTo(2 * 8 * 3 / 4.0);
        assertThat(row("seq1f1b").traffic()).isEqualTo(2 * 8 * 3 / 4.0);
    }

    @Test
    void gathersAndReductionsAreCountedAndTakeTheirTime() {
        LoweringOptions lowering =
                LoweringOptions.plain()
                        .withGathers(new GatherSettings(ParameterResidency.PER_PASS, 0))
                        .withReduction(GradientReduction.PER_STEP);
        var work =
                new FamilyComparison.Work(
                        1, 8, 2, List.of(1), new OpCosts(3, 4, 5, 0), lowering, 2, 6);

        FamilyComparison sharded = FamilyComparison.of(work);

        FamilyComparison.Row breadthFirst = row(sharded, "breadth-first");
        FamilyComparison.Row depthFirst = row(sharded, "interleaved-1f1b");
        // chunk 0, chunk 1 and, after both its passes, chunk 0 again
        assertThat(breadthFirst.gathers()).isEqualTo(1.5);
        assertThat(depthFirst.gathers()).isGreaterThan(breadthFirst.gathers());
        assertThat(List.of(breadthFirst.reductions(), depthFirst.reductions())).containsOnly(1.0);
        // nobody hides three gathers, of which the last waits for a reduction, nor the last one's
        assertThat(breadthFirst.makespan()).isCloseTo(8 * 12 + 3 * 1 + 2 * 3, within(1e-9));
    }

    @Test
    void recomputeTakesAForwardMoreButNotWhileAGradientIsAwaited() {
        var work =
                new FamilyComparison.Work(
                        4,
                        8,
                        2,
                        List.of(1),
                        new OpCosts(3, 4, 5, 0),
                        LoweringOptions.plain().withRecompute(),
                        0,
                        0);

        FamilyComparison.Row gpipe = row(FamilyComparison.of(work), "gpipe");

        assertThat(gpipe.makespan()).isCloseTo(8 * 15 + 3 * 12, within(1e-9));
        assertThat(gpipe.peakActivations()).isEqualTo(1);
    }

    @Test
    void theFastestComesFirst() {
        assertThat(comparison.rows())
                .isSortedAccordingTo((a, b) -> Double.compare(a.makespan(), b.makespan()));
    }
}
