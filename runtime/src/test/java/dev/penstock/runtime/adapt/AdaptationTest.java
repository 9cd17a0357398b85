package dev.penstock.runtime.adapt;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.InstanceOfAssertFactories.LIST;

import dev.penstock.actors.spi.PlanRevision;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.RunSteps;
import dev.penstock.actors.spi.Timeouts;
import dev.penstock.runtime.metrics.PipelineMeter;
import dev.penstock.runtime.metrics.SimulatedRun;
import dev.penstock.runtime.model.shape.FineTuning;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.runtime.model.shape.TrainedParts;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.simulate.InFlight;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** When a run wants another plan; its stages compute at different speeds. */
class AdaptationTest {
    private final SimulatedRun run = SimulatedRun.of("1f1b", PipelineShape.of(2, 8));
    private final List<String> notes = new ArrayList<>();
    private final List<PlanRevision> wished = new ArrayList<>();
    private Adaptation adaptation = adapting(true);
    private long step;
    private int room = Integer.MAX_VALUE;

    private Adaptation adapting(boolean atOnce) {
        return new Adaptation(
                5, 0.01, atOnce, new PipelineMeter(run.schedule()), model(), new Plans());
    }

    private static int layersOfFirstStage(PlanRevision revision) {
        String partition = revision.settings().getFirst();
        return Integer.parseInt(partition.replaceAll(".*\\[(\\d+),.*", "$1"));
    }

    private SpeedModel model() {
        return new SpeedModel(
                new SpeedModel.Order(
                        "1f1b", List.of(), run.schedule(), InFlight.auto(run.schedule())),
                new StagePartition(List.of(100, 100)),
                new TrainedParts(ModelShape.gpt2(2, 2, 96, 200, 3, true), FineTuning.FULL),
                true,
                SpeedModelTest.NO_OTHERS,
                (costs, _) -> costs,
                1_000_000);
    }

    /** Plans fit if the first stage has no more layers than there is room for. */
    private final class Plans implements Adaptation.Reviser {
        @Override
        public Optional<Adaptation.Revised> revise(
                int number, List<String> settings, String reason) {
            var revision = new PlanRevision(number, settings, "hash", reason);
            wished.add(revision);
            var plan =
                    new RunPlan(
                            "run",
                            "first",
                            run.schedule(),
                            run.schedule(),
                            RankGrid.pipeline(2),
                            Map.of(),
                            new RunSteps(0, 1_000_000, 0, 0, 0, 0),
                            Timeouts.DEFAULT,
                            false,
                            false,
                            Long.MAX_VALUE);
            boolean fits = settings.isEmpty() || layersOfFirstStage(revision) <= room;
            return Optional.of(
                    new Adaptation.Revised(
                            plan.as(revision, plan.hash()), fits, fits ? List.of() : List.of(0)));
        }

        @Override
        public SpeedModel model(PlanRevision plan) {
            return AdaptationTest.this.model();
        }
    }

    private void begin(PlanRevision revision) {
        adaptation.begin(
                new RunListener() {
                    @Override
                    public void onPlanNote(String note) {
                        notes.add(note);
                    }
                },
                revision);
    }

    private Optional<RunPlan> wantedAfter(int steps) {
        Optional<RunPlan> wanted = Optional.empty();
        for (int i = 0; i < steps; i++) {
            adaptation.onStep(run.perfect(++step));
            wanted = adaptation.wanted();
        }
        return wanted;
    }

    @Test
    void aWishThatNobodyFollowsHasWonNothing() {
        begin(PlanRevision.NONE);

        assertThat(wantedAfter(10)).isPresent();
        assertThat(wantedAfter(5)).as("the run could not be saved; it is wished again").isPresent();

        assertThat(notes).isEmpty();
    }

    @Test
    void whatAChangeHasWonIsToldOnceTheRanksAreBackAndSettled() {
        begin(PlanRevision.NONE);
        PlanRevision revision = wantedAfter(10).orElseThrow().revision();
        adaptation.onRevised(revision, run.schedule(), step);
        adaptation.onRecovery(
                new RecoveryReport(
                        "the plan changes",
                        2,
                        List.of(),
                        RecoveryReport.Restart.CHECKPOINT,
                        0,
                        1,
                        0,
                        step));

        var _ = wantedAfter(9);
        assertThat(notes).isEmpty();
        var _ = wantedAfter(1);
        assertThat(notes).singleElement().asString().startsWith("since the change of plan 1,");
    }

    /** Ranks died, and the run follows a plan without them. */
    @Test
    void aChangeThatOthersWantedHasWonNothing() {
        begin(PlanRevision.NONE);
        assertThat(wantedAfter(10)).isPresent();

        adaptation.onRevised(
                new PlanRevision(1, List.of("schedule.without=[1]"), "hash", "rank 1 is absent"),
                run.schedule(),
                step);

        assertThat(wantedAfter(10).orElseThrow().revision().number()).isEqualTo(2);
        assertThat(notes).isEmpty();
    }

    /** Another supervisor led the run to its third plan and died. */
    @Test
    void whoTakesARunUpCountsItsPlansOn() {
        begin(
                new PlanRevision(
                        3, List.of("pipeline.partition=[101, 99]"), "hash", "it was faster"));

        assertThat(wantedAfter(10).orElseThrow().revision().number()).isEqualTo(4);
        assertThat(wished)
                .singleElement()
                .extracting(PlanRevision::settings)
                .asInstanceOf(LIST)
                .as("costs of the configuration may not stay where the order is made for none")
                .contains("schedule.kind=1f1b", "schedule.costs=[]");
    }

    private PlanRevision follows(RunPlan wanted) {
        PlanRevision revision = wanted.revision();
        adaptation.onRevised(revision, run.schedule(), step);
        return revision;
    }

    @Test
    void layersThatMayMoveWithRanksStayWhileTheseLiveAsAtFirst() {
        adaptation = adapting(false);
        begin(PlanRevision.NONE);
        adaptation.onPlaced(List.of(0, 1));
        assertThat(wantedAfter(20)).isEmpty();

        adaptation.onPlaced(List.of(0, 0));
        assertThat(wantedAfter(5)).isPresent();
    }

    @Test
    void ranksThatLiveAsBeforeFollowThePlanOfThatTimeAtOnce() {
        adaptation = adapting(false);
        begin(PlanRevision.NONE);
        adaptation.onPlaced(List.of(0, 1));
        adaptation.onPlaced(List.of(0, 0));
        assertThat(adaptation.wanted()).as("nobody knows what suits them here").isEmpty();
        PlanRevision together = follows(wantedAfter(10).orElseThrow());
        adaptation.onPlaced(List.of(0, 0));
        assertThat(adaptation.wanted()).as("it is followed").isEmpty();

        adaptation.onPlaced(List.of(0, 1));
        PlanRevision apart = follows(adaptation.wanted().orElseThrow());
        assertThat(apart.settings()).isEmpty();
        assertThat(apart.number()).isEqualTo(2);

        adaptation.onPlaced(List.of(0, 0));
        assertThat(adaptation.wanted().orElseThrow().revision().settings())
                .isEqualTo(together.settings());
    }

    @Test
    void aStageGetsAsManyLayersAsItHasRoomFor() {
        begin(PlanRevision.NONE);
        int best = layersOfFirstStage(wantedAfter(10).orElseThrow().revision());
        assertThat(best).isGreaterThan(101);

        room = best - 1;
        assertThat(layersOfFirstStage(wantedAfter(5).orElseThrow().revision())).isEqualTo(room);

        room = 100;
        assertThat(wantedAfter(5)).as("no better plan has room").isEmpty();
        wished.clear();
        assertThat(wantedAfter(5)).isEmpty();
        assertThat(wished).as("it is known that there is no room").isEmpty();
    }
}
