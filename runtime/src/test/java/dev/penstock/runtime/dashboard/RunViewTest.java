package dev.penstock.runtime.dashboard;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.runtime.events.RunEvent;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.lower.Lowering;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What the page is told. */
class RunViewTest {
    private final RunView view = new RunView(Path.of("somewhere"));

    @BeforeEach
    void begin() {
        view.apply(began(0));
    }

    @Test
    void theFirstUpdateAsksToLoadAndLaterOnesBringWhatIsNew() {
        step(1, 5);
        assertThat(view.update().reload()).isTrue();

        step(2, 4);
        view.apply(new RunEvent.Evaluated(1, 2, 4.5));
        view.apply(new RunEvent.Noted(1, RunEvent.Noted.Kind.STALL, "slow"));
        RunView.Update update = view.update();

        assertThat(update.reload()).isFalse();
        assertThat(update.rows()).hasSize(1);
        assertThat(update.rows().getFirst()).startsWith(2, 4);
        assertThat(update.evaluations()).containsExactly(new double[] {2, 4.5});
        assertThat(update.happenings()).extracting(RunView.Happening::text).containsExactly("slow");
        assertThat(view.update().rows()).isEmpty();
    }

    @Test
    void stepsThatAreDoneAgainAreForgottenAndThePageLoadsAnew() {
        for (int step = 1; step <= 6; step++) {
            step(step, step);
        }
        view.update();

        view.apply(new RunEvent.Noted(1, RunEvent.Noted.Kind.RECOVERING, "rank 1 died"));
        assertThat(view.head().recovering()).isTrue();
        view.apply(new RunEvent.Recovered(1, "back", 2, List.of(1), "checkpoint", 1, 1, 2, 4));

        assertThat(view.head().recovering()).isFalse();
        assertThat(view.head().step()).isEqualTo(4);
        assertThat(view.update().reload()).isTrue();
        assertThat(view.curves().columns()[0]).containsExactly(1, 2, 3, 4);
    }

    @Test
    void aResumedRunKeepsWhatCountsAndRunsAgain() {
        step(1, 5);
        step(2, 4);
        view.apply(new RunEvent.Ended(9, RunEvent.Ended.Outcome.INTERRUPTED, 2, ""));
        assertThat(view.head().state()).isEqualTo("interrupted");

        view.apply(began(1));

        assertThat(view.head().state()).isEqualTo("running");
        assertThat(view.curves().columns()[0]).containsExactly(1);
    }

    @Test
    void aLongRunKeepsItsPeaksWhenItIsThinned() {
        int steps = 50_000;
        for (int step = 1; step <= steps; step++) {
            step(step, step == 31_234 ? 100 : 2 + 1.0 / step);
        }

        double[][] columns = view.curves().columns();

        assertThat(columns[0].length).isBetween(8_000, 16_001);
        assertThat(columns[0]).isSorted();
        assertThat(columns[0][columns[0].length - 1]).isEqualTo(steps);
        assertThat(Arrays.stream(columns[1]).max()).hasValue(100);
    }

    @Test
    void theTimeLeftIsThatOfThePaceSoFar() {
        for (int step = 1; step <= 40; step++) {
            view.apply(stepped(step, 3, 2_000L * step));
        }

        assertThat(view.head().etaSeconds()).isEqualTo(2.0 * (100 - 40));
        assertThat(view.head().tokensPerSecond()).isEqualTo(64 / 0.5);
    }

    @Test
    void aSmallerStepIsNotTakenForAFastOne() {
        view.apply(new RunEvent.Stepped(1, 1, 3, 1, 1e-3, 64, 500_000, 0, 0, Map.of(), List.of()));
        view.apply(new RunEvent.Stepped(2, 2, 3, 1, 1e-3, 16, 125_000, 0, 0, Map.of(), List.of()));

        assertThat(view.head().tokensPerSecond()).isEqualTo(128);
    }

    @Test
    void ofManySampledStepsTheLastOnesStay() {
        for (int step = 1; step <= 100; step++) {
            int[] times = new int[200_000];
            view.apply(
                    new RunEvent.OpTimes(
                            1, step, List.of(new RunEvent.OpTimes.Rank(times, times, 0, 0))));
        }

        assertThat(view.head().samples()).hasSizeLessThan(50).endsWith(99L, 100L);
        assertThat(view.sample(100)).get().extracting(RunEvent.OpTimes::step).isEqualTo(100L);
        assertThat(view.sample(1)).as("the oldest there is").isPresent();
    }

    @Test
    void whatIsWrongIsToldUntilItIsWellAgain() {
        step(1, 5);
        assertThat(view.head().health()).isEqualTo("good");

        view.apply(new RunEvent.Noted(1, RunEvent.Noted.Kind.STALL, "rank 1 waits"));
        assertThat(view.head().health()).isEqualTo("stalled");
        step(2, 5);
        assertThat(view.head().health()).isEqualTo("good");

        view.apply(new RunEvent.Noted(1, RunEvent.Noted.Kind.STRAGGLER, "rank 1"));
        assertThat(view.head().health()).isEqualTo("slow rank");
        step(150, 5);
        assertThat(view.head().health()).isEqualTo("good");

        view.apply(new RunEvent.Noted(1, RunEvent.Noted.Kind.SAVE_FAILED, "disk full"));
        assertThat(view.head().health()).isEqualTo("last checkpoint failed");
        view.apply(new RunEvent.Saved(1, 150, 10, 10));
        assertThat(view.head().health()).isEqualTo("good");
        view.apply(new RunEvent.Verified(1, 150, false, 10, "a file is short"));
        assertThat(view.head().health()).isEqualTo("last checkpoint failed");
        assertThat(view.standing().checkpoints().getLast().verified()).isEqualTo("a file is short");
    }

    @Test
    void aRunThatIsOverHasNoSlowRank() {
        step(1, 5);
        view.apply(new RunEvent.Noted(1, RunEvent.Noted.Kind.STRAGGLER, "rank 1"));

        view.apply(new RunEvent.Ended(2, RunEvent.Ended.Outcome.COMPLETED, 1, ""));

        assertThat(view.head().health()).isEqualTo("good");
    }

    @Test
    void membersAndLinksAreSentWhenTheyAreNew() {
        view.update();
        var member = new RunEvent.Members.Member(0, "node", 7, "0.1");
        view.apply(new RunEvent.Members(1, List.of(member)));
        view.apply(new RunEvent.Leases(2, List.of(120L)));

        RunStatusView told = Objects.requireNonNull(view.update().standing());

        assertThat(told.members()).containsExactly(member);
        assertThat(told.leaseMillis()).containsExactly(120L);
        assertThat(view.update().standing()).isNull();
    }

    /** Rank 3 is gone from then on: rank 1 does all of its stage. */
    @Test
    void aRunThatGoesOnWithAnotherPlanShowsWhoDoesWhatInIt() {
        String all =
                """
                schedule: wired-1f1b
                ranks: 4
                peers: 2
                micro-batches: 2

                rank 0: 0F0 0B0
                rank 1: 1F0 1B0
                rank 2: 0F1 0B1
                rank 3: 1F1 1B1
                """;
        String without =
                all.replace("ranks: 4", "ranks: 4\nabsent: 3")
                        .replace("1F0 1B0", "1F0 1B0 1F1 1B1")
                        .replace("rank 3: 1F1 1B1", "rank 3:");
        view.apply(began(0, all, "", ""));
        view.apply(new RunEvent.Members(1, List.of(new RunEvent.Members.Member(0, "n", 7, ""))));
        step(1, 5);
        assertThat(view.facts().orElseThrow().microBatches())
                .containsExactly(List.of(0), List.of(0), List.of(1), List.of(1));

        view.apply(began(1, without, "schedule.without=[3]", ""));
        assertThat(view.curves().happenings().getLast())
                .extracting(RunView.Happening::kind, RunView.Happening::text)
                .containsExactly(
                        "plan", "continues after step 1 with the plan schedule.without=[3]");
        view.apply(new RunEvent.Noted(2, RunEvent.Noted.Kind.RECOVERING, "in epoch 2: .."));

        RunView.Facts facts = view.facts().orElseThrow();
        assertThat(facts.microBatches())
                .containsExactly(List.of(0), List.of(0, 1), List.of(1), List.of());
        assertThat(facts.absent()).containsExactly(3);
        assertThat(view.standing().members()).isNotEmpty();
        assertThat(view.head().health()).isEqualTo("changing its plan");
        view.apply(new RunEvent.Noted(3, RunEvent.Noted.Kind.RECOVERING, "rank 1 died"));
        assertThat(view.head().health()).isEqualTo("recovering");
    }

    /** The forward and the backward of the last micro-batch are under way one after the other. */
    @Test
    void theSimulatedStepWaitsForEmulatedLinks() {
        Schedule order = Lowering.lower(Generators.generate("1f1b", PipelineShape.of(2, 1)));

        int free = simulatedMicros(order, "0 s");
        int late = simulatedMicros(order, "100 ms");

        assertThat(late - free).isEqualTo(200_000);
    }

    private int simulatedMicros(Schedule order, String latency) {
        String configuration =
                "data { source = \"pom.xml\" }, pipeline.stages = 2, batch { sequences = 1, micro-batches = 1 }, data-plane.emulate { latency = %s }"
                        .formatted(latency);
        view.apply(began(0, ScheduleText.print(order), "", configuration));
        List<RunEvent.OpTimes.Rank> ranks = new ArrayList<>();
        for (int rank = 0; rank < 2; rank++) {
            int ops = order.program(rank).ops().size();
            ranks.add(
                    new RunEvent.OpTimes.Rank(
                            IntStream.range(0, ops).map(i -> 1_000 * i).toArray(),
                            IntStream.range(0, ops).map(i -> 1_000 * (i + 1)).toArray(),
                            0,
                            0));
        }
        view.apply(new RunEvent.OpTimes(1, 1, ranks));
        return view.picture(1).orElseThrow().simulated().stream()
                .flatMapToInt(lane -> IntStream.of(lane.ends()))
                .max()
                .orElseThrow();
    }

    private void step(long step, double loss) {
        view.apply(stepped(step, loss, step));
    }

    private static RunEvent.Stepped stepped(long step, double loss, long time) {
        return new RunEvent.Stepped(
                time, step, loss, 1, 1e-3, 0, 500_000, 0.2, 0.1, Map.of(), List.of());
    }

    private static RunEvent.Began began(long resumed) {
        return began(resumed, "no schedule", "", "");
    }

    private static RunEvent.Began began(
            long resumed, String schedule, String revision, String configuration) {
        return new RunEvent.Began(
                1,
                1,
                "test",
                resumed,
                100,
                64,
                1000,
                schedule,
                RankGrid.pipeline(2),
                List.of(),
                configuration,
                Map.of(),
                revision);
    }
}
