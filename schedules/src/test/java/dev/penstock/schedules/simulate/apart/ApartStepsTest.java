package dev.penstock.schedules.simulate.apart;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ApartStepsTest {

    @Test
    void aTinyRoundGivesWhatIsWorkedOutByHand() {
        // 2 layers, ops of 1/5: F0 F1 I1 W1 W0, exchanges of 2/5 from 4/5 on and from 6/5 on
        assertThat(new ApartSteps(2, 1, 0, 1).utilisation(0.8)).isCloseTo(1 / 1.6, within(1e-12));
        assertThat(new ApartSteps(2, 4, 0, 1).utilisation(0.8)).isCloseTo(4 / 4.6, within(1e-12));
        // layer 0 after the first step, from 5/5 to 7/5, which its forward waits for; layer 1 after
        // the second, which lasts from 7/5 to 12/5: from 11/5 to 13/5
        assertThat(new ApartSteps(2, 1, 0, 2).utilisation(0.8)).isCloseTo(2 / 2.6, within(1e-12));
        // with a lag the second step ends at 10/5, layer 1 at 11/5
        assertThat(new ApartSteps(2, 1, 1, 2).utilisation(0.8)).isCloseTo(2 / 2.2, within(1e-12));
    }

    /** A stage for each layer on one rank, with a reduction behind each backward for weights. */
    @ParameterizedTest
    @CsvSource({"3, 100", "12, 1000", "12, 200000", "7, 0"})
    void aStepWithSumsTakesAsLongAsInTheSimulatorOfOrders(int layers, long sum) {
        List<Op> ops = new ArrayList<>();
        for (int layer = 0; layer < layers; layer++) {
            ops.add(new Op.Forward(new WorkUnit(layer, 0, 0)));
        }
        for (int layer = layers - 1; layer >= 0; layer--) {
            ops.add(new Op.BackwardInput(new WorkUnit(layer, 0, 0)));
            ops.add(new Op.BackwardWeight(new WorkUnit(layer, 0, 0)));
            ops.add(new Op.ReduceGradients(layer));
        }
        var schedule =
                new Schedule(
                        "layers",
                        new PipelineShape(1, layers, 1, List.of(1)),
                        Placement.loop(1, layers),
                        List.of(new RankProgram(0, ops)),
                        List.of());
        CostModel costs =
                new CostModel() {
                    @Override
                    public long nanos(int rank, int position, Op op) {
                        boolean none = op instanceof Op.BackwardInput && op.stage() == 0;
                        return op instanceof Op.ReduceGradients || none ? 0 : 1000;
                    }

                    @Override
                    public long backgroundNanos(int rank, Op op) {
                        return sum;
                    }
                };
        double computed = 1000.0 * (3 * layers - 1);

        long simulated = ScheduleSimulator.simulate(schedule, costs).makespanNanos();

        assertThat(new ApartSteps(layers, 1, 0, 1).utilisation(layers * sum / computed))
                .isCloseTo(computed / simulated, within(1e-9));
    }
}
