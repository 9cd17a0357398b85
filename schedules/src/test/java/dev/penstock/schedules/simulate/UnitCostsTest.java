package dev.penstock.schedules.simulate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.schedules.ir.Channel;
import dev.penstock.schedules.ir.LayerRange;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.simulate.UnitCosts.Kind;
import java.util.Map;
import org.junit.jupiter.api.Test;

class UnitCostsTest {
    private static final WorkUnit UNIT = new WorkUnit(0, 0, 0);
    private static final Op FORWARD = new Op.Forward(UNIT);
    private static final Op BACKWARD = new Op.Backward(UNIT);
    private static final Op INPUT = new Op.BackwardInput(UNIT);
    private static final Op WEIGHT = new Op.BackwardWeight(UNIT);
    private static final Op PAIR =
            new Op.Overlapped(new Op.Forward(UNIT), new Op.Backward(new WorkUnit(0, 1, 0)));
    private static final Op HALF_PAIR =
            new Op.Overlapped(new Op.Forward(UNIT), new Op.BackwardInput(new WorkUnit(0, 1, 0)));

    private static long cost(UnitCosts costs, Op op) {
        return costs.nanos(0, 0, op);
    }

    @Test
    void everyKindHasADefault() {
        for (UnitCosts costs : new UnitCosts[] {UnitCosts.defaults(), UnitCosts.parse(" ")}) {
            assertThat(cost(costs, FORWARD)).isEqualTo(1);
            assertThat(cost(costs, INPUT)).isEqualTo(1);
            assertThat(cost(costs, WEIGHT)).isEqualTo(1);
            assertThat(cost(costs, BACKWARD)).isEqualTo(2);
            assertThat(cost(costs, new Op.Recompute(UNIT))).isEqualTo(1);
            assertThat(cost(costs, PAIR)).isEqualTo(3);
            assertThat(cost(costs, HALF_PAIR)).isEqualTo(2);
            assertThat(cost(costs, new Op.SendActivation(UNIT))).isZero();
            assertThat(costs.latencyNanos(new Channel(0, 1))).isZero();
            assertThat(costs.occupancyNanos(new Channel(0, 1), UNIT)).isZero();
            assertThat(costs.backgroundNanos(0, new Op.ReduceGradients(0))).isZero();
        }
    }

    @Test
    void everyKindCanBeSet() {
        UnitCosts costs =
                UnitCosts.parse(
                        "forward=2, backward-input=3,backward-weight=5,backward=7,recompute=11,"
                                + "overlapped=6,transfer=17,link=19,gather=23,reduce=29");

        assertThat(cost(costs, FORWARD)).isEqualTo(2);
        assertThat(cost(costs, INPUT)).isEqualTo(3);
        assertThat(cost(costs, WEIGHT)).isEqualTo(5);
        assertThat(cost(costs, BACKWARD)).isEqualTo(7);
        assertThat(cost(costs, new Op.Recompute(UNIT))).isEqualTo(11);
        assertThat(cost(costs, PAIR)).isEqualTo(6);
        assertThat(cost(costs, HALF_PAIR)).as("5 x 6 / 9, rounded").isEqualTo(3);
        assertThat(costs.latencyNanos(new Channel(0, 1))).isEqualTo(17);
        assertThat(costs.occupancyNanos(new Channel(0, 1), UNIT)).isEqualTo(19);
        assertThat(costs.backgroundNanos(0, new Op.GatherParameters(0, LayerRange.ALL)))
                .isEqualTo(23);
        assertThat(costs.backgroundNanos(0, new Op.ReduceGradients(0))).isEqualTo(29);
        assertThat(UnitCosts.parse(costs.text()).text()).isEqualTo(costs.text());
    }

    @Test
    void aBackwardIsTheSumOfItsPartsAndARecomputeAForward() {
        UnitCosts costs = UnitCosts.parse("backward-weight=5,forward=4");

        assertThat(cost(costs, BACKWARD)).isEqualTo(6);
        assertThat(cost(costs, new Op.Recompute(UNIT))).isEqualTo(4);
        assertThat(cost(costs, PAIR)).isEqualTo(10);
    }

    @Test
    void theHalvesOfABackwardThatAloneIsGivenAreItsParts() {
        UnitCosts costs = UnitCosts.parse("backward=21");

        assertThat(cost(costs, INPUT)).isEqualTo(10);
        assertThat(cost(costs, WEIGHT)).isEqualTo(11);
        assertThat(cost(UnitCosts.parse("backward=21,backward-input=4"), WEIGHT)).isEqualTo(1);
    }

    @Test
    void sumsHideBehindTheWeightsAndBehindTheOtherHalfOfAPair() {
        UnitCosts costs =
                UnitCosts.parse("forward=4,backward-input=5,backward-weight=6,recompute=3,sum=2");

        assertThat(cost(costs, FORWARD)).isEqualTo(4 + 2);
        assertThat(cost(costs, INPUT)).isEqualTo(5 + 2);
        assertThat(cost(costs, WEIGHT)).isEqualTo(6);
        assertThat(cost(costs, BACKWARD)).isEqualTo(5 + 6);
        assertThat(cost(costs, new Op.Recompute(UNIT))).isEqualTo(3 + 2);
        assertThat(cost(costs, PAIR)).isEqualTo(4 + 5 + 6);
        assertThat(cost(costs, HALF_PAIR)).isEqualTo(4 + 5);
    }

    @Test
    void aSumThatIsLongerThanWhatIsBesideItIsWaitedFor() {
        UnitCosts costs = UnitCosts.parse("forward=4,backward-input=5,backward-weight=6,sum=20");

        assertThat(cost(costs, BACKWARD)).isEqualTo(5 + 20);
        assertThat(cost(costs, PAIR)).isEqualTo(5 + 20);
        assertThat(cost(costs, HALF_PAIR)).isEqualTo(5 + 20);
    }

    @Test
    void aPairOfNothingCostsWhatItsPartsDo() {
        UnitCosts costs = UnitCosts.parse("forward=0,backward=0,backward-input=3,overlapped=8");

        assertThat(cost(costs, PAIR)).isEqualTo(8);
        assertThat(cost(costs, HALF_PAIR)).isEqualTo(3);
    }

    @Test
    void allProblemsAreToldAtOnce() {
        assertThatThrownBy(
                        () ->
                                UnitCosts.parse(
                                        "forward=1,forwards=2,backward,backward-input=-1,link=1.5,"
                                                + "forward=2,transfer=10000000001,=,"))
                .isInstanceOfSatisfying(
                        InvalidCostsException.class,
                        e ->
                                assertThat(e.problems())
                                        .containsExactly(
                                                "unknown cost 'forwards', expected one of forward, backward-input, backward-weight, backward, recompute, overlapped, sum, transfer, link, gather, offload, reduce",
                                                "expected costs as 'forward=1,backward=2', got 'backward'",
                                                "expected a whole number from 0 to 10000000000 for backward-input, got '-1'",
                                                "expected a whole number from 0 to 10000000000 for link, got '1.5'",
                                                "the cost of forward is given twice",
                                                "expected a whole number from 0 to 10000000000 for transfer, got '10000000001'",
                                                "unknown cost '', expected one of forward, backward-input, backward-weight, backward, recompute, overlapped, sum, transfer, link, gather, offload, reduce",
                                                "expected costs as 'forward=1,backward=2', got ''"));
    }

    @Test
    void costsOutOfRangeAreRefused() {
        assertThatThrownBy(() -> UnitCosts.of(Map.of(Kind.LINK, -1L)))
                .hasMessage("expected a cost from 0 to 10000000000 for link, got -1");
    }
}
