package dev.penstock.schedules.plan;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.plan.work.BlockShape;
import dev.penstock.schedules.plan.work.DeviceSpec;
import dev.penstock.schedules.plan.work.Hardware;
import dev.penstock.schedules.plan.work.Layout;
import dev.penstock.schedules.plan.work.LayoutHardware;
import dev.penstock.schedules.plan.work.Link;
import dev.penstock.schedules.plan.work.ModelShape;
import dev.penstock.schedules.plan.work.NodeGroup;
import dev.penstock.schedules.plan.work.PipelineWork;
import dev.penstock.schedules.plan.work.PlanChoice;
import dev.penstock.schedules.plan.work.PlanRequest;
import dev.penstock.schedules.plan.work.StepTail;
import dev.penstock.schedules.plan.work.TrainingBytes;
import dev.penstock.schedules.plan.work.ZeroStage;
import dev.penstock.schedules.simulate.MemoryProfile;
import dev.penstock.schedules.validate.Conditions;
import dev.penstock.schedules.validate.ScheduleValidator;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.EnumSet;
import java.util.List;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class PlannerTest {
    private static final long MIB = 1L << 20;
    private static final long GIB = 1L << 30;
    private static final ModelShape SMALL = new ModelShape(5, 256, 4, 5_000, 128, true);

    private static SearchSpace space(List<Integer> chunks, List<Integer> slices) {
        return new SearchSpace(
                Generators.kinds(),
                chunks,
                slices,
                EnumSet.allOf(ZeroStage.class),
                List.of(false, true));
    }

    /** The planner's plans are the best of all, in their order. */
    private static PlanReport compared(PlanRequest request, SearchSpace space) {
        PlanReport report = Planner.plan(request, space, limitless(4));

        List<BruteForcePlanner.Found> best =
                new BruteForcePlanner(request, space)
                        .all().stream()
                                .sorted(
                                        Comparator.comparingLong(BruteForcePlanner.Found::stepNanos)
                                                .thenComparingLong(
                                                        BruteForcePlanner.Found::peakBytes)
                                                .thenComparing(
                                                        BruteForcePlanner.Found::choice,
                                                        ChoiceOrder.SIMPLER_FIRST))
                                .limit(4)
                                .toList();
        assertThat(report.leastOpenNanos()).isEmpty();
        assertThat(report.plans())
                .map(
                        p ->
                                new BruteForcePlanner.Found(
                                        p.choice(), p.partition(), p.stepNanos(), p.peakBytes()))
                .isEqualTo(best);
        return report;
    }

    /**
     * Bands and families as they are told, over everything that there is: of what is left, the
     * fastest and what is near to it, leanest first.
     */
    private static List<BruteForcePlanner.Found> listed(
            PlanRequest request, SearchSpace space, Ranking ranking, int most) {
        var left = new ArrayList<>(new BruteForcePlanner(request, space).all());
        var listed = new ArrayList<BruteForcePlanner.Found>();
        while (!left.isEmpty()) {
            long fastest =
                    left.stream().mapToLong(BruteForcePlanner.Found::stepNanos).min().orElseThrow();
            List<BruteForcePlanner.Found> band =
                    left.stream()
                            .filter(
                                    f ->
                                            f.stepNanos() - fastest
                                                    <= (long) (ranking.near() * fastest))
                            .sorted(
                                    Comparator.comparingLong(BruteForcePlanner.Found::peakBytes)
                                            .thenComparing(
                                                    BruteForcePlanner.Found::choice,
                                                    ChoiceOrder.SIMPLER_FIRST))
                            .toList();
            left.removeAll(band);
            for (BruteForcePlanner.Found plan : band) {
                long before =
                        listed.stream()
                                .map(BruteForcePlanner.Found::choice)
                                .filter(choice -> choice.kind().equals(plan.choice().kind()))
                                .filter(choice -> choice.stages() == plan.choice().stages())
                                .count();
                if (before < ranking.ofAFamily()) {
                    listed.add(plan);
                }
            }
        }
        return listed.subList(0, Math.min(most, listed.size()));
    }

    @ParameterizedTest
    @CsvSource({
        "40, 0.02, 2, 5",
        "4000, 0.02, 2, 5",
        "4000, 0.02, 1, 3",
        "4000, 0.2, 1, 8",
        "4000, 0.02, 1000, 6",
        "100, 0.1, 3, 12",
        "4000, 0.02, 2, 1"
    })
    void listsWhatTryingEverythingLists(long memory, double near, int ofAFamily, int most) {
        Hardware cluster = Clusters.laptops(memory * MIB, memory / 2 * MIB, 2 * memory * MIB);
        var request = new PlanRequest(SMALL, TrainingBytes.FP32, cluster, 4);
        SearchSpace space = space(List.of(1, 2), List.of(1, 2));
        var ranking = new Ranking(near, ofAFamily);

        PlanReport report = Planner.plan(request, space, limitless(most), ranking);

        assertThat(report.leastOpenNanos()).isEmpty();
        assertThat(report.plans())
                .map(
                        p ->
                                new BruteForcePlanner.Found(
                                        p.choice(), p.partition(), p.stepNanos(), p.peakBytes()))
                .isEqualTo(listed(request, space, ranking, most));
        assertThat(PlanExplanation.of(report)).noneMatch(line -> line.contains(" -"));
    }

    @ParameterizedTest
    @ValueSource(longs = {20, 40, 60, 80, 100, 150, 400, 4_000})
    void findsWhatTryingEverythingFindsOnUnequalLaptops(long memory) {
        Hardware cluster = Clusters.laptops(memory * MIB, memory / 2 * MIB, 2 * memory * MIB);
        var request = new PlanRequest(SMALL, TrainingBytes.FP32, cluster, 4);

        compared(request, space(List.of(1, 2), List.of(1, 2)));
    }

    @ParameterizedTest
    @ValueSource(longs = {30, 50, 80, 4_000})
    void findsWhatTryingEverythingFindsOnNodesOfTwo(long memory) {
        var device = new DeviceSpec(memory * MIB, 1e12, 0.5, 50e9);
        var group = new NodeGroup("box", 2, 2, device, new Link(2_000, 5e9));
        var cluster = new Hardware("boxes", List.of(group), new Link(30_000, 1e9));
        var request = new PlanRequest(SMALL, TrainingBytes.MIXED, cluster, 4);

        compared(request, space(List.of(1, 2), List.of(1, 4)));
    }

    /** Queries share keys, hidden layers are gated, and most layers see a window. */
    @Test
    void findsWhatTryingEverythingFindsForOtherBlocks() {
        var block = new BlockShape(2, 48, 700, 2, 512, List.of(16, 16, 0, 16, 16));
        var model = new ModelShape(5, 256, 4, 5_000, 128, false, block, 0, 256);
        var device = new DeviceSpec(80 * MIB, 1e12, 0.5, 50e9);
        var group = new NodeGroup("box", 2, 2, device, new Link(2_000, 5e9));
        var cluster = new Hardware("boxes", List.of(group), new Link(30_000, 1e9));
        var request = new PlanRequest(model, TrainingBytes.MIXED, cluster, 4);

        compared(request, space(List.of(1, 2), List.of(1, 4)));
    }

    /** The two slow devices together are one stage; cut alike, three ranks would fill and drain. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void slowDevicesShareAStageBesideAFastOne(boolean fastFirst) {
        var fast =
                new NodeGroup(
                        "fast",
                        1,
                        1,
                        new DeviceSpec(GIB, 2e12, 0.5, 200e9),
                        new Link(1_000, 100e9));
        var slow =
                new NodeGroup(
                        "slow",
                        1,
                        2,
                        new DeviceSpec(GIB, 1e12, 0.5, 100e9),
                        new Link(1_000, 100e9));
        var cluster =
                new Hardware(
                        "unequal",
                        fastFirst ? List.of(fast, slow) : List.of(slow, fast),
                        new Link(10_000, 20e9));
        var model = new ModelShape(5, 256, 4, 500, 128, false);
        var request = new PlanRequest(model, TrainingBytes.FP32, cluster, 2);

        PlanReport report = compared(request, space(List.of(1, 2), List.of(1, 2)));

        Plan winner = report.winner().orElseThrow();
        assertThat(winner.choice().layout().shards())
                .isEqualTo(fastFirst ? List.of(1, 2) : List.of(2, 1));
        assertThat(winner.choice().describe())
                .contains("pipeline 2 x tensor %s x".formatted(fastFirst ? "[1, 2]" : "[2, 1]"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"breadth-first", "interleaved-1f1b", "zb-v"})
    void reductionsRunBesideTheBackwardsThatAreLeft(String kind) {
        var device = new DeviceSpec(4_000 * MIB, 1e12, 0.5, 50e9);
        var group = new NodeGroup("box", 2, 2, device, new Link(2_000, 50e9));
        var cluster = new Hardware("boxes", List.of(group), new Link(3_000, 20e9));
        var request = new PlanRequest(SMALL, TrainingBytes.MIXED, cluster, 4);
        var space =
                new SearchSpace(
                        List.of(kind),
                        List.of(2),
                        List.of(1),
                        EnumSet.of(ZeroStage.NONE, ZeroStage.OPTIMIZER),
                        List.of(false));

        PlanReport report = compared(request, space);

        Plan replicated =
                report.plans().stream()
                        .filter(plan -> plan.choice().layout().data() > 1)
                        .findFirst()
                        .orElseThrow();
        PlanChoice choice = replicated.choice();
        var hardware = LayoutHardware.of(cluster, choice.layout());
        int sequences = 4 / choice.layout().data() / choice.microBatches();
        PipelineWork work =
                PipelineWork.of(request, hardware, sequences, choice.sliceLengths(), false);
        Placement placement =
                Generators.generate(
                                kind,
                                new PipelineShape(
                                        choice.layout().pipeline(),
                                        2,
                                        choice.microBatches(),
                                        choice.sliceLengths()))
                        .placement();
        long[] reductions =
                StepTail.reductions(work, replicated.partition(), placement, choice.zero());
        long[] rest = StepTail.nanos(work, replicated.partition(), placement, choice.zero());
        long oneAfterAnother = 0;
        for (int rank = 0; rank < rest.length; rank++) {
            long sum = rest[rank];
            for (int stage : placement.stagesOf(rank)) {
                sum += reductions[stage];
            }
            oneAfterAnother = Math.max(oneAfterAnother, sum);
        }
        assertThat(replicated.tailNanos()).isPositive().isLessThan(oneAfterAnother);
    }

    private static SearchLimits limitless(int plans) {
        return new SearchLimits(plans, Long.MAX_VALUE, Long.MAX_VALUE);
    }

    @Test
    void aPlanIsProvedWithAllThatItsRunAdds() {
        var choice =
                new PlanChoice(
                        new Layout(2, 1, 2),
                        ZeroStage.PARAMETERS,
                        "1f1b",
                        1,
                        2,
                        List.of(128),
                        true);
        Schedule order = Generators.generate("1f1b", new PipelineShape(2, 1, 2, List.of(128)));

        Schedule asRun = LoweredPlan.lowered(choice, order);

        ScheduleValidator.validate(asRun, Conditions.training().withReplicas()).orThrow();
        assertThat(asRun.program(1).ops())
                .map(op -> OpText.print(op, order.shape()))
                .containsSubsequence(
                        "1UNSHARD",
                        "1RECV_F0",
                        "1F0",
                        "1RESHARD",
                        "1R0",
                        "1B0",
                        "1RESHARD",
                        "1REDUCE_GRAD",
                        "1F1",
                        "1R1",
                        "1B1",
                        "1REDUCE_GRAD");
    }

    @Test
    void closedFormsOfMemoryNeverPromiseTooMuch() {
        for (ScheduleFamily family : ScheduleFamily.all(Generators.kinds(), List.of(1, 2, 3))) {
            for (int ranks = 1; ranks <= 5; ranks++) {
                for (int microBatches = 1; microBatches <= 10; microBatches++) {
                    for (int chunks : family.chunks()) {
                        for (int slices = 1; slices <= (family.sliced() ? 3 : 1); slices++) {
                            checkPeaks(family, ranks, chunks, microBatches, slices);
                        }
                    }
                }
            }
        }
    }

    private static void checkPeaks(
            ScheduleFamily family, int ranks, int chunks, int microBatches, int slices) {
        var shape = new PipelineShape(ranks, chunks, microBatches, Collections.nCopies(slices, 1));
        Schedule schedule;
        try {
            schedule = Generators.generate(family.kind(), shape);
        } catch (IllegalArgumentException e) {
            return;
        }
        assertThat(schedule.placement()).isEqualTo(family.placement(ranks, chunks));
        for (MemoryProfile.RankPeak peak : MemoryProfile.of(schedule, PassKind.TRAINING).ranks()) {
            assertThat(family.leastPeakUnits(shape, peak.rank()))
                    .as("%s on rank %d of %s", family.kind(), peak.rank(), shape)
                    .isLessThanOrEqualTo(peak.peakUnits());
        }
    }

    @Test
    void everyKindTakesPart() {
        assertThat(ScheduleFamily.all(Generators.kinds(), List.of(1, 2)))
                .extracting(ScheduleFamily::kind)
                .containsExactlyElementsOf(Generators.kinds());
    }

    @Test
    void saysWhatTheLeastNeedIsWhereNothingFits() {
        Hardware cluster = Clusters.laptops(10 * MIB, 9 * MIB);
        var request = new PlanRequest(SMALL, TrainingBytes.FP32, cluster, 4);

        PlanReport report = Planner.plan(request, 3);

        assertThat(report.plans()).isEmpty();
        Refusal nearest = report.refusals().getFirst();
        assertThat(nearest.memory().excess()).isPositive();
        assertThat(PlanExplanation.of(report))
                .singleElement(InstanceOfAssertFactories.STRING)
                .contains("the least memory any plan needs is", nearest.device())
                .containsPattern("which has (10|9).0 MiB");
        // with that much more there is a plan
        long more = nearest.memory().excess();
        Hardware larger = Clusters.laptops(10 * MIB + more, 9 * MIB + more);
        assertThat(Planner.plan(new PlanRequest(SMALL, TrainingBytes.FP32, larger, 4), 1).plans())
                .hasSize(1);
    }

    @Test
    void explainsTheWinnerAgainstTheNextAndAgainstWhatDoesNotFit() {
        Hardware cluster = Clusters.laptops(60 * MIB, 40 * MIB, 60 * MIB);
        var request = new PlanRequest(SMALL, TrainingBytes.FP32, cluster, 8);

        PlanReport report = Planner.plan(request, 3);
        String text = String.join("\n", PlanExplanation.of(report));

        assertThat(report.plans()).hasSize(3);
        assertThat(text)
                .startsWith(report.plans().getFirst().choice().describe() + " takes ")
                .contains("The runner-up, " + report.plans().get(1).choice().describe())
                .containsPattern("would need [0-9.]+ [MK]iB more on rank [0-9]");
        for (Refusal refusal : report.refusals()) {
            assertThat(refusal.memory().excess()).isPositive();
            assertThat(refusal.leastNanos()).isLessThan(report.plans().getFirst().stepNanos());
        }
    }

    @Test
    void aStoppedSearchSaysWhatIsLeft() {
        var request = new PlanRequest(SMALL, TrainingBytes.FP32, Clusters.laptops(GIB, GIB), 8);
        SearchSpace space = SearchSpace.everything();

        PlanReport all = Planner.plan(request, space, limitless(1));
        PlanReport stopped = Planner.plan(request, space, new SearchLimits(3, 1, 1_000_000));

        assertThat(all.leastOpenNanos()).isEmpty();
        assertThat(stopped.proved()).isLessThanOrEqualTo(all.proved());
        assertThat(stopped.leastOpenNanos())
                .hasValueSatisfying(
                        least ->
                                assertThat(least)
                                        .isLessThanOrEqualTo(
                                                stopped.plans().getFirst().stepNanos()));
        assertThat(all.plans().getFirst().stepNanos())
                .isGreaterThanOrEqualTo(
                        Math.min(
                                stopped.leastOpenNanos().orElseThrow(),
                                stopped.plans().getFirst().stepNanos()));
    }

    @Test
    void moreMemoryNeverMakesAPlanSlower() {
        long before = Long.MAX_VALUE;
        for (long memory = 30; memory <= 240; memory *= 2) {
            Hardware cluster = Clusters.laptops(memory * MIB, memory * MIB, memory * MIB);
            var request = new PlanRequest(SMALL, TrainingBytes.FP32, cluster, 4);

            PlanReport report = Planner.plan(request, 1);
            long step = report.winner().map(Plan::stepNanos).orElse(Long.MAX_VALUE);

            assertThat(step).isLessThanOrEqualTo(before);
            before = step;
        }
        assertThat(before).isLessThan(Long.MAX_VALUE);
    }

    @Test
    void aNearPlanThatIsFasterIsSaidToComeSecondForAReason() {
        Hardware cluster = Clusters.laptops(60 * MIB, 40 * MIB, 60 * MIB);
        var request = new PlanRequest(SMALL, TrainingBytes.FP32, cluster, 8);
        var ranking = new Ranking(0.9, 1);

        PlanReport report =
                Planner.plan(request, space(List.of(1), List.of(1)), limitless(4), ranking);

        assertThat(report.plans().get(1).stepNanos())
                .isLessThan(report.plans().getFirst().stepNanos());
        assertThat(String.join("\n", PlanExplanation.of(report)))
                .containsPattern(
                        "takes [0-9.]+ % less, which is near, and (is less simple|needs [0-9.]+ [KM]iB more memory)[.]");
    }
}
