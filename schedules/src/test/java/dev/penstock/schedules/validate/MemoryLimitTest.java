package dev.penstock.schedules.validate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.schedules.RandomOrders;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.ir.TorchCsv;
import dev.penstock.schedules.lower.ForwardOnly;
import dev.penstock.schedules.lower.GatherSettings;
import dev.penstock.schedules.lower.InsertParameterGathers;
import dev.penstock.schedules.lower.ParameterResidency;
import dev.penstock.schedules.simulate.MemoryProfile;

import org.junit.jupiter.api.Test;

import java.util.List;

class MemoryLimitTest {
    private static final long MIB = 1 << 20;

    private static Schedule oneRank(String header, String ops) {
        return ScheduleText.parse("ranks: 1\n" + header + "rank 0: " + ops + "\n");
    }

    private static RankBytes peak(Schedule schedule, MemoryModel model) {
        return RankBytes.of(schedule, PassKind.TRAINING, model).getFirst();
    }

    @Test
    void unitsAreHeldFromTheirForwardToTheirBackward() {
        Schedule schedule = oneRank("micro-batches: 3\n", "0F0 0F1 0B0 0F2 0B1 0B2");
        MemoryModel model = MemoryModel.uniform(schedule.shape(), 100, 1, 0);

        assertThat(peak(schedule, model)).isEqualTo(new RankBytes(0, 1, 200, 0, 0, 0));
    }

    @Test
    void aSplitBackwardHoldsUntilTheWeights() {
        Schedule schedule = oneRank("micro-batches: 2\n", "0F0 0I0 0F1 0I1 0W0 0W1");

        assertThat(peak(schedule, MemoryModel.uniform(schedule.shape(), 10, 0, 0)))
                .isEqualTo(new RankBytes(0, 2, 20, 0, 0, 0));
    }

    @Test
    void whatABackwardForTheInputMakesIsHeldUntilTheWeights() {
        Schedule schedule = oneRank("micro-batches: 3\n", "0F0 0I0 0F1 0I1 0W0 0W1 0F2 0B2");
        var model = model(10, 100);

        assertThat(peak(schedule, model)).isEqualTo(new RankBytes(0, 3, 220, 0, 0, 0));
        assertThat(peak(oneRank("micro-batches: 2\n", "0F0 0F1 0B0 0I1 0W1"), model))
                .isEqualTo(new RankBytes(0, 3, 110, 0, 0, 0));
        assertThat(peak(oneRank("micro-batches: 1\n", "0I0 0I0 0F0 0I0 0I0 0W0 0W0 0F0"), model))
                .isEqualTo(new RankBytes(0, 3, 110, 0, 0, 0));
    }

    private static MemoryModel model(long activations, long weight) {
        return new MemoryModel(
                List.of(List.of(activations)),
                List.of(List.of(0L)),
                List.of(List.of(weight)),
                List.of(List.of(0L)));
    }

    @Test
    void aUnitThatIsRecomputedHoldsItsInputInBetween() {
        Schedule schedule =
                oneRank("micro-batches: 3\n", "0F0 0F1 0F2 0R0 0B0 0R1 0B1 0R2 0I2 0W2");

        assertThat(peak(schedule, MemoryModel.uniform(schedule.shape(), 100, 10, 0)))
                .isEqualTo(new RankBytes(0, 2, 100, 20, 0, 0));
        assertThat(peak(schedule, MemoryModel.uniform(schedule.shape(), 100, 101, 0)))
                .isEqualTo(new RankBytes(0, 2, 100, 202, 0, 0));
    }

    @Test
    void slicesAndStagesHaveTheirOwnWeights() {
        Schedule schedule =
                oneRank(
                        "chunks: 2\nmicro-batches: 1\nslices: 2\n",
                        "0F0s0 0F0s1 1F0s0 1F0s1 1B0s1 1B0s0 0B0s1 0B0s0");
        var model =
                new MemoryModel(
                        List.of(List.of(1L, 2L), List.of(4L, 8L)),
                        List.of(List.of(0L, 0L), List.of(0L, 0L)),
                        List.of(List.of(0L), List.of(0L)));

        assertThat(peak(schedule, model)).isEqualTo(new RankBytes(0, 3, 15, 0, 0, 0));
    }

    @Test
    void gatheredLayersAreHeldUntilTheirRelease() {
        Schedule schedule =
                oneRank(
                        "micro-batches: 1\n",
                        "0UNSHARD[0-1] 0UNSHARD[2-2] 0F0 0RESHARD[0-0] 0B0 0UNSHARD[0-0] 0UNSHARD"
                                + " 0RESHARD");
        var model =
                new MemoryModel(
                        List.of(List.of(100L)), List.of(List.of(0L)), List.of(List.of(1L, 2L, 4L)));

        assertThat(peak(schedule, model)).isEqualTo(new RankBytes(0, 2, 100, 0, 7, 0));
        assertThat(peak(oneRank("micro-batches: 1\n", "0RESHARD 0UNSHARD 0RESHARD 0F0 0B0"), model))
                .isEqualTo(new RankBytes(0, 3, 100, 0, 0, 0));
    }

    @Test
    void whatIsGatheredAgainWeighsAgain() {
        Schedule schedule =
                oneRank(
                        "micro-batches: 1\n",
                        "0UNSHARD 0RESHARD 0UNSHARD 0F0 0R0 0R0 0B0 0RESHARD 0RESHARD");

        assertThat(peak(schedule, MemoryModel.uniform(schedule.shape(), 10, 5, 3)))
                .isEqualTo(new RankBytes(0, 3, 10, 0, 3, 0));
    }

    @Test
    void longerResidencyIsHeavier() {
        Schedule schedule = TorchCsv.read("0F0,0F1,1F0,1F1,1B0,1B1,0B0,0B1\n").schedule();
        MemoryModel model = MemoryModel.uniform(schedule.shape(), 0, 0, 5);

        assertThat(peak(gathered(schedule, ParameterResidency.PER_PASS, 0), model).gatheredBytes())
                .isEqualTo(5);
        assertThat(peak(gathered(schedule, ParameterResidency.PER_PASS, 1), model).gatheredBytes())
                .isEqualTo(10);
        assertThat(peak(gathered(schedule, ParameterResidency.PER_STEP, 0), model).gatheredBytes())
                .isEqualTo(10);
    }

    private static Schedule gathered(
            Schedule schedule, ParameterResidency residency, int lookAhead) {
        return InsertParameterGathers.into(schedule, new GatherSettings(residency, lookAhead));
    }

    @Test
    void anEvaluationHoldsOneUnitAtATime() {
        Schedule schedule = ForwardOnly.of(TorchCsv.read("0F0,0F1,0B0,0B1\n").schedule());

        assertThat(
                        RankBytes.of(
                                schedule,
                                PassKind.FORWARD_ONLY,
                                MemoryModel.uniform(schedule.shape(), 7, 0, 0)))
                .containsExactly(new RankBytes(0, 0, 7, 0, 0, 0));
    }

    @Test
    void weighingEveryUnitOneIsCountingUnits() {
        RandomOrders.some(300)
                .forEach(
                        order -> {
                            MemoryModel ones = MemoryModel.uniform(order.shape(), 1, 0, 0);
                            MemoryProfile units = MemoryProfile.of(order, PassKind.TRAINING);

                            assertThat(RankBytes.of(order, PassKind.TRAINING, ones))
                                    .extracting(RankBytes::peakBytes)
                                    .containsExactlyElementsOf(
                                            units.ranks().stream()
                                                    .map(peak -> (long) peak.peakUnits())
                                                    .toList());
                        });
    }

    @Test
    void tooMuchIsRefusedWithWhatIsHeld() {
        Schedule schedule =
                oneRank(
                        "chunks: 2\nmicro-batches: 2\n",
                        "0UNSHARD 0F0 0F1 1F0 1F1 1B0 1B1 0R0 0B0 0R1 0B1 0RESHARD");
        MemoryModel model = MemoryModel.uniform(schedule.shape(), 1536 * MIB, 512, 3 * 1024 * MIB);
        MemoryLimit limit = MemoryLimit.uniform(model, 1, 4096 * MIB);

        List<Violation> violations =
                ScheduleValidator.validate(schedule, Conditions.training().withMemoryLimit(limit))
                        .violations();

        assertThat(violations)
                .singleElement()
                .isInstanceOfSatisfying(
                        Violation.MemoryExceeded.class,
                        exceeded -> {
                            assertThat(exceeded.place().position()).isEqualTo(4);
                            assertThat(exceeded.limitBytes()).isEqualTo(4096 * MIB);
                            assertThat(exceeded.peakBytes()).isEqualTo(6144 * MIB + 1024);
                            assertThat(exceeded.message())
                                    .isEqualTo(
                                            "rank 0 holds 6.0 GiB at 1F1 (op 4), 2.0 GiB more than"
                                                + " its limit of 4.0 GiB: 3.0 GiB activations"
                                                + " (units: 2 of stage 1); 1.0 KiB inputs to"
                                                + " recompute from (units: 2 of stage 0); 3.0 GiB"
                                                + " gathered parameters (layers: 1 of stage 0)");
                        });
    }

    @Test
    void everyRankHasItsOwnLimitAndMayReachIt() {
        Schedule schedule = TorchCsv.read("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n").schedule();
        MemoryModel model = MemoryModel.uniform(schedule.shape(), 600, 0, 0);

        assertThat(violations(schedule, new MemoryLimit(model, List.of(1200L, 600L)))).isEmpty();
        assertThat(violations(schedule, new MemoryLimit(model, List.of(1199L, 599L))))
                .containsExactly(
                        "rank 0 holds 1.2 KiB at 0F1 (op 1), 1 B more than its limit of 1.2 KiB:"
                                + " 1.2 KiB activations (units: 2 of stage 0)",
                        "rank 1 holds 600 B at 1F0 (op 0), 1 B more than its limit of 599 B:"
                                + " 600 B activations (units: 1 of stage 1)");
    }

    private static List<String> violations(Schedule schedule, MemoryLimit limit) {
        return ScheduleValidator.validate(schedule, Conditions.training().withMemoryLimit(limit))
                .violations()
                .stream()
                .map(Violation::message)
                .toList();
    }

    @Test
    void aModelOfAnotherPipelineIsRefused() {
        Schedule schedule = TorchCsv.read("0F0,0B0\n1F0,1B0\n").schedule();
        MemoryModel ofOne = MemoryModel.uniform(PipelineShape.of(1, 1), 1, 1, 1);
        MemoryModel ofSlices = MemoryModel.uniform(PipelineShape.of(2, 1, 2), 1, 1, 1);
        MemoryModel ofTwo = MemoryModel.uniform(PipelineShape.of(2, 1), 1, 1, 1);

        assertThatThrownBy(() -> RankBytes.of(schedule, PassKind.TRAINING, ofOne))
                .hasMessage(
                        "expected the bytes of 2 stages and 1 slices, got 1 stages of activations,"
                                + " 1 of inputs, 1 of what backwards keep, 1 of parameters");
        assertThatThrownBy(() -> RankBytes.of(schedule, PassKind.TRAINING, ofSlices))
                .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> violations(schedule, MemoryLimit.uniform(ofTwo, 3, 1)))
                .hasMessage("expected the limits of 2 ranks, got 3");
        assertThatThrownBy(() -> MemoryModel.uniform(PipelineShape.of(1, 1), -1, 0, 0))
                .hasMessageContaining("got [[-1]]");
    }

    @Test
    void opsOfUnitsThatDoNotExistWeighNothing() {
        Schedule schedule =
                oneRank("micro-batches: 1\n", "0F0 0F9 0R9 5UNSHARD 5RESHARD 0B9 0B0 0B0");

        assertThat(peak(schedule, MemoryModel.uniform(schedule.shape(), 3, 1, 1)))
                .isEqualTo(new RankBytes(0, 0, 3, 0, 0, 0));
    }
}
