package dev.penstock.schedules.plan;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.schedules.plan.work.Layout;
import dev.penstock.schedules.plan.work.PlanChoice;
import dev.penstock.schedules.plan.work.PlanRequest;
import dev.penstock.schedules.plan.work.RankMemory;
import dev.penstock.schedules.plan.work.ZeroStage;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** Explanations of invented plans. */
class PlanExplanationTest {
    private static final long MS = 1_000_000;
    private static final long MIB = 1L << 20;
    private static final PlanChoice CHOICE =
            new PlanChoice(
                    new Layout(2, 1, 4), ZeroStage.OPTIMIZER, "1f1b", 1, 8, List.of(20), false);
    private static final PlanChoice OTHER =
            new PlanChoice(
                    new Layout(4, 2, 1), ZeroStage.NONE, "zbv", 2, 16, List.of(10, 10), true);

    private static Plan plan(
            PlanChoice choice, long step, long busy, long tail, RankMemory... memory) {
        return new Plan(choice, List.of(2, 2), step, busy, tail, 0.125, List.of(memory));
    }

    private static RankMemory memory(int rank, long mebibytes) {
        return new RankMemory(
                rank, mebibytes * MIB, MIB + MIB / 2, 512 << 10, (mebibytes + 10) * MIB);
    }

    private static final Plan WINNER =
            plan(CHOICE, 100 * MS, 80 * MS, 5 * MS, memory(0, 6), memory(1, 8), memory(2, 7));

    private static List<String> explained(List<Plan> plans, List<Refusal> refusals, long open) {
        PlanRequest request = CountingHardware.request(CountingHardware.cluster(8, 1), 8);
        return PlanExplanation.of(
                new PlanReport(
                        request,
                        plans,
                        refusals,
                        100,
                        10,
                        open < 0 ? Optional.empty() : Optional.of(open)));
    }

    @Test
    void theWinnersTimeAndTheRankThatNeedsMost() {
        assertThat(explained(List.of(WINNER), List.of(), -1))
                .containsExactly(
                        "1f1b with 8 micro-batches, pipeline 2 x tensor 1 x data 4, ZeRO 1 takes 100.0 ms per step: its busiest rank computes for 80.0 ms, 12.5 % of all ranks' time is bubble, reductions and optimizer take up to 5.0 ms.",
                        "It needs most on rank 1: 10.0 MiB of 18.0 MiB (8.0 MiB for parameters, gradients and optimizer, 1.5 MiB for activations, 512.0 KiB of working space).");
    }

    @Test
    void theRunnerUpByWhatItDoesLonger() {
        Plan slower = plan(OTHER, 120 * MS, 70 * MS, 9 * MS, memory(0, 6));

        assertThat(explained(List.of(WINNER, slower), List.of(), -1).get(2))
                .isEqualTo(
                        "The runner-up, zbv with 16 micro-batches, 2 chunks, 2 slices, pipeline 4 x tensor 2 x data 1, ZeRO 0, recompute, takes 20.0 % longer: its busiest rank computes 10.0 ms shorter, waits 26.0 ms longer, reduces and updates 4.0 ms longer.");
    }

    @Test
    void theRunnerUpThatIsAsFastByItsMemory() {
        Plan larger = plan(OTHER, 100 * MS, 80 * MS, 5 * MS, memory(0, 9), memory(1, 8));

        assertThat(explained(List.of(WINNER, larger), List.of(), -1).get(2))
                .endsWith("takes 0.0 % longer and needs 11.0 MiB.");
    }

    @Test
    void whatDoesNotFitByWhatItIsMissing() {
        var missing = new RankMemory(3, 20 * MIB, 0, 0, 16 * MIB);
        var refusal = new Refusal(OTHER, missing, "box node 3", 90 * MS);

        List<String> lines = explained(List.of(WINNER), List.of(refusal), -1);

        assertThat(lines).hasSize(3);
        assertThat(lines.get(2))
                .isEqualTo(
                        OTHER.describe()
                                + " would need 4.0 MiB more on rank 3 (box node 3 has 16.0 MiB); it could not take less than 90.0 ms.");
        assertThat(
                        explained(
                                List.of(WINNER),
                                List.of(refusal, refusal, refusal, refusal, refusal),
                                -1))
                .hasSize(2 + 4);
    }

    @Test
    void aStoppedSearchByWhatItCouldStillSave() {
        assertThat(explained(List.of(WINNER), List.of(), 75 * MS).getLast())
                .isEqualTo(
                        "The search stopped before everything was decided: what is left could save 25.0 % at most.");
        assertThat(explained(List.of(WINNER), List.of(), 100 * MS)).hasSize(2);
    }

    @Test
    void whereNothingFitsTheLeastNeed() {
        var missing = new RankMemory(0, 20 * MIB, MIB, MIB, 16 * MIB);

        assertThat(explained(List.of(), List.of(new Refusal(CHOICE, missing, "alone", 1)), -1))
                .containsExactly(
                        "no plan fits: the least memory any plan needs is 22.0 MiB on alone, which has 16.0 MiB ("
                                + CHOICE.describe()
                                + ")");
        assertThat(explained(List.of(), List.of(), -1))
                .containsExactly(
                        "no plan is possible: nothing divides the model and the batch among the devices");
    }

    @Test
    void sizesAndTimesAreInTheUnitThatFits() {
        assertThat(PlanExplanation.size(0)).isEqualTo("0 B");
        assertThat(PlanExplanation.size(1023)).isEqualTo("1023 B");
        assertThat(PlanExplanation.size(1024)).isEqualTo("1.0 KiB");
        assertThat(PlanExplanation.size(-3 << 19)).isEqualTo("-1.5 MiB");
        assertThat(PlanExplanation.size(5L << 40)).isEqualTo("5.0 TiB");
        assertThat(PlanExplanation.size(5L << 50)).isEqualTo("5120.0 TiB");
        assertThat(PlanExplanation.time(1_500)).isEqualTo("1.5 us");
        assertThat(PlanExplanation.time(999_900)).isEqualTo("999.9 us");
        assertThat(PlanExplanation.time(1_000_000)).isEqualTo("1.0 ms");
        assertThat(PlanExplanation.time(999_900_000)).isEqualTo("999.9 ms");
        assertThat(PlanExplanation.time(1_000_000_000)).isEqualTo("1.00 s");
        assertThat(PlanExplanation.time(79_040_000_000L)).isEqualTo("79.04 s");
    }

    /** 8 sequences of 20 tokens in a tenth of a second. */
    @Test
    void tokensPerSecond() {
        PlanRequest request = CountingHardware.request(CountingHardware.cluster(8, 1), 8);

        assertThat(WINNER.tokensPerSecond(request)).isEqualTo(1_600);
        assertThat(WINNER.peakBytes()).isEqualTo(10 * MIB);
    }
}
