package dev.penstock.runtime.lengths;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.runtime.data.rows.Arrangement;
import dev.penstock.runtime.model.Orders;
import dev.penstock.runtime.model.TinyFamilies;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.InFlight;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

class SimulatedArrangementTest {
    private static final ModelShape MODEL = TinyFamilies.shape("gpt2-variants");
    private static final int[] TOKENS = {8, 8, 16, 24, 40, 64};

    @Test
    void wholeSequencesCostWhatTheyCost() {
        CostModel whole = CostModel.of(300, 600, 7);
        StagePartition partition = StagePartition.byFlops(MODEL, 2);
        var costs = new LengthCosts(whole, MODEL, partition, new int[] {64, 32});
        var unit = new WorkUnit(1, 0, 0);
        var shorter = new WorkUnit(1, 1, 0);

        assertThat(costs.nanos(1, 0, new Op.Forward(unit))).isEqualTo(300);
        assertThat(costs.nanos(1, 0, new Op.Backward(unit))).isEqualTo(600);
        double share =
                (double) partition.flops(MODEL, 1, 32) / partition.flops(MODEL, 1, MODEL.context());
        assertThat(share).isBetween(0.4, 0.5);
        assertThat(costs.nanos(1, 0, new Op.Backward(shorter))).isEqualTo(Math.round(600 * share));
    }

    /** The FLOPs of a stage, counted one product at a time. */
    @Test
    void flopsOfASequenceAreThoseOfItsTokens() {
        StagePartition partition = StagePartition.byFlops(MODEL, 1);
        long perToken = 0;
        for (int layer = 0; layer < MODEL.layers(); layer++) {
            perToken += MODEL.layerFlops(layer, MODEL.context());
        }
        long context = MODEL.context();
        assertThat(perToken / context)
                .isCloseTo(
                        MODEL.layers() * MODEL.layerFlopsPerToken(0),
                        within((long) MODEL.layers()));
        assertThat(partition.flops(MODEL, 0, 1))
                .isLessThan(partition.flops(MODEL, 0, (int) context) / context);
    }

    @Test
    void theFoundArrangementIsTheShortestOfAll() {
        for (int stages : List.of(1, 2, 3)) {
            Schedule order = Orders.oneForwardOneBackward(stages, TOKENS.length, 1);
            var search = search(order, stages);
            int[] found = search.of(TOKENS);
            long least =
                    SimulatedArrangement.candidates(TOKENS.length).stream()
                            .mapToLong(candidate -> search.makespan(TOKENS, candidate))
                            .min()
                            .orElseThrow();

            assertThat(search.makespan(TOKENS, found)).isEqualTo(least);
            assertThat(search.of(TOKENS)).isEqualTo(found);
            assertThat(search(order, stages).of(TOKENS)).isEqualTo(found);
        }
    }

    /** While a pipeline fills and drains, others wait for what is there: it should be short. */
    @Test
    void shortOnesAtBothEndsShortenAPipeline() {
        var search = search(Orders.oneForwardOneBackward(3, TOKENS.length, 1), 3);
        int count = TOKENS.length;
        int[] padded = new int[count];
        Arrays.fill(padded, MODEL.context());

        assertThat(search.makespan(TOKENS, Arrangement.hill(count)))
                .isLessThan(search.makespan(TOKENS, Arrangement.valley(count)))
                .isLessThan(search.makespan(padded, Arrangement.rising(count)));
    }

    private static SimulatedArrangement search(Schedule order, int stages) {
        StagePartition partition = StagePartition.byFlops(MODEL, stages);
        return new SimulatedArrangement(
                order, InFlight.auto(order), MODEL, partition, LengthCosts.whole(MODEL, partition));
    }
}
