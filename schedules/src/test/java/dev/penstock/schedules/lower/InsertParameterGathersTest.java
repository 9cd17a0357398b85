package dev.penstock.schedules.lower;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.schedules.RandomOrders;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.LayerRange;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.ir.TorchCsv;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.validate.Conditions;
import dev.penstock.schedules.validate.ScheduleValidator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

class InsertParameterGathersTest {
    /** Two chunks, all micro-batches of one before the other. */
    private static final String BREADTH_FIRST = "0F0,0F1,1F0,1F1,1B0,1B1,0B0,0B1\n";

    private static String gathered(String csv, ParameterResidency residency, int lookAhead) {
        Schedule schedule = TorchCsv.read(csv).schedule();
        return TorchCsv.print(
                InsertParameterGathers.into(schedule, new GatherSettings(residency, lookAhead)));
    }

    @Test
    void everyOpMayGatherAnew() {
        assertThat(gathered("0F0,0F1,0B0,0B1\n", ParameterResidency.PER_OP, 0))
                .isEqualTo(
                        "0UNSHARD,0F0,0RESHARD,0UNSHARD,0F1,0RESHARD,0UNSHARD,0B0,0RESHARD,0UNSHARD,0B1,0RESHARD\n");
    }

    @Test
    void opsOfAMicroBatchThatFollowEachOtherMayShareAGather() {
        String slicesThenTurn = "0F0s0,0F0s1,0B0s1,0B0s0,0F1s0,0F1s1,0B1s1,0B1s0\n";

        assertThat(gathered(slicesThenTurn, ParameterResidency.PER_MICRO_BATCH, 0))
                .isEqualTo(
                        "0UNSHARD,0F0s0,0F0s1,0B0s1,0B0s0,0RESHARD,0UNSHARD,0F1s0,0F1s1,0B1s1,0B1s0,0RESHARD\n");
        assertThat(
                        gathered(
                                "0F0,1F0,1B0,0B0,0F1,1F1,1B1,0B1\n",
                                ParameterResidency.PER_MICRO_BATCH,
                                0))
                .isEqualTo(
                        "0UNSHARD,0F0,1UNSHARD,1F0,1B0,1RESHARD,0B0,0RESHARD,"
                                + "0UNSHARD,0F1,1UNSHARD,1F1,1B1,1RESHARD,0B1,0RESHARD\n");
    }

    @Test
    void aBreadthFirstOrderGathersOncePerPass() {
        assertThat(gathered(BREADTH_FIRST, ParameterResidency.PER_PASS, 0))
                .isEqualTo(
                        "0UNSHARD,0F0,0F1,0RESHARD,1UNSHARD,1F0,1F1,1B0,1B1,1RESHARD,0UNSHARD,0B0,0B1,0RESHARD\n");
    }

    @Test
    void parametersMayStayForTheStep() {
        assertThat(gathered(BREADTH_FIRST, ParameterResidency.PER_STEP, 0))
                .isEqualTo("0UNSHARD,0F0,0F1,1UNSHARD,1F0,1F1,1B0,1B1,1RESHARD,0B0,0B1,0RESHARD\n");
    }

    @Test
    void aLookAheadGathersComputationsEarlierButNotBeforeTheLastRelease() {
        assertThat(gathered(BREADTH_FIRST, ParameterResidency.PER_PASS, 1))
                .isEqualTo(
                        "0UNSHARD,0F0,1UNSHARD,0F1,0RESHARD,1F0,1F1,1B0,0UNSHARD,1B1,1RESHARD,0B0,0B1,0RESHARD\n");
        assertThat(gathered(BREADTH_FIRST, ParameterResidency.PER_PASS, 3))
                .isEqualTo(
                        "0UNSHARD,1UNSHARD,0F0,0F1,0RESHARD,1F0,0UNSHARD,1F1,1B0,1B1,1RESHARD,0B0,0B1,0RESHARD\n");
        assertThat(gathered("0F0,0B0\n", ParameterResidency.PER_OP, 5))
                .isEqualTo("0UNSHARD,0F0,0RESHARD,0UNSHARD,0B0,0RESHARD\n");
    }

    @Test
    void aPairNeedsTheParametersOfBothItsStages() {
        assertThat(
                        gathered(
                                "0F0,1F0,(0F1;1B0)OVERLAP_F_B,(1F1;0B0)OVERLAP_F_B,1B1,0B1\n",
                                ParameterResidency.PER_PASS,
                                0))
                .isEqualTo(
                        "0UNSHARD,0F0,0RESHARD,1UNSHARD,1F0,0UNSHARD,(0F1;1B0)OVERLAP_F_B,(1F1;0B0)OVERLAP_F_B,0RESHARD,1B1,1RESHARD,0UNSHARD,0B1,0RESHARD\n");
        assertThat(
                        gathered(
                                "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n",
                                ParameterResidency.PER_MICRO_BATCH,
                                0))
                .isEqualTo("0UNSHARD,0F0,(0F1;0B0)OVERLAP_F_B,0B1,0RESHARD\n");
    }

    @Test
    void aScheduleThatGathersKeepsItsGathers() {
        String own = "0UNSHARD,0F0,0B0\n";

        assertThat(gathered(own, ParameterResidency.PER_OP, 0)).isEqualTo(own);
    }

    @Test
    void layersAreGatheredOneAfterAnother() {
        Schedule order = TorchCsv.read("0F0,0B0\n").schedule();
        var settings = new GatherSettings(ParameterResidency.PER_STEP, 0).byLayer(2);

        Schedule gathered = InsertParameterGathers.into(order, settings);

        assertThat(gathered.program(0).ops())
                .map(op -> OpText.print(op, order.shape()))
                .containsExactly(
                        "0UNSHARD[0-0]",
                        "0UNSHARD[1-1]",
                        "0F0",
                        "0B0",
                        "0RESHARD[0-0]",
                        "0RESHARD[1-1]");
        assertThatThrownBy(() -> settings.byLayer(0)).hasMessageContaining("got 0");
    }

    @Test
    void aNegativeLookAheadIsRefused() {
        assertThatThrownBy(() -> new GatherSettings(ParameterResidency.PER_STEP, -1))
                .hasMessageContaining("got -1");
    }

    @Test
    void anyOrderCanRunWithAnySettings() {
        RandomOrders.some(60).forEach(InsertParameterGathersTest::runsWithAllSettings);
        for (String kind : List.of("gpipe", "1f1b", "terapipe", "seq1f1b")) {
            runsWithAllSettings(Generators.generate(kind, PipelineShape.of(3, 4)));
        }
    }

    private static void runsWithAllSettings(Schedule order) {
        for (ParameterResidency residency : ParameterResidency.values()) {
            for (int lookAhead = 0; lookAhead < 4; lookAhead++) {
                var settings = new GatherSettings(residency, lookAhead);
                var options = LoweringOptions.plain().withGathers(settings).withCapacity(1);

                Schedule training = Lowering.lower(order, options);
                Schedule evaluation = Lowering.lowerForwardOnly(order, options);

                ScheduleValidator.validate(
                                training, Conditions.training().with(InFlight.uniform(1)))
                        .orThrow();
                ScheduleValidator.validate(
                                evaluation, Conditions.forwardOnly().with(InFlight.uniform(1)))
                        .orThrow();
                training.programs().forEach(InsertParameterGathersTest::endsWithNothingGathered);
            }
        }
    }

    /** Nothing is gathered twice: by counting, without knowing how long layers stay. */
    private static void endsWithNothingGathered(RankProgram program) {
        Set<Integer> resident = new HashSet<>();
        for (Op op : program.ops()) {
            if (op instanceof Op.GatherParameters(int stage, LayerRange layers)) {
                assertThat(layers).isEqualTo(LayerRange.ALL);
                assertThat(resident.add(stage)).isTrue();
            } else if (op instanceof Op.ReleaseParameters(int stage, LayerRange _)) {
                assertThat(resident.remove(stage)).isTrue();
            }
        }
        assertThat(resident).isEmpty();
    }

    @Test
    void theLessOftenTheyMoveTheLongerTheyStay() {
        RandomOrders.some(60)
                .forEach(
                        order -> {
                            long perOp = gathers(order, ParameterResidency.PER_OP);
                            long perMicroBatch = gathers(order, ParameterResidency.PER_MICRO_BATCH);
                            long perPass = gathers(order, ParameterResidency.PER_PASS);
                            long perStep = gathers(order, ParameterResidency.PER_STEP);

                            assertThat(perOp)
                                    .isEqualTo(
                                            order.programs().stream()
                                                    .mapToInt(p -> p.ops().size())
                                                    .sum());
                            assertThat(perOp)
                                    .isGreaterThanOrEqualTo(Math.max(perMicroBatch, perPass));
                            assertThat(perStep)
                                    .isEqualTo(order.shape().stages())
                                    .isLessThanOrEqualTo(Math.min(perMicroBatch, perPass));
                        });
    }

    @Test
    void aStageThatGathersByItselfKeepsItsGathers() {
        String written = "0UNSHARD,0F0,0F1,1F0,0RESHARD,1F1,1B0,1B1,0UNSHARD,0B0,0B1,0RESHARD\n";

        assertThat(gathered(written, ParameterResidency.PER_STEP, 0))
                .isEqualTo(
                        "0UNSHARD,0F0,0F1,1UNSHARD,1F0,0RESHARD,1F1,1B0,1B1,1RESHARD,0UNSHARD,0B0,0B1,0RESHARD\n");
    }

    private static long gathers(Schedule order, ParameterResidency residency) {
        Schedule gathered = InsertParameterGathers.into(order, new GatherSettings(residency, 0));
        return ScheduleText.print(gathered).split("UNSHARD", -1).length - 1L;
    }
}
