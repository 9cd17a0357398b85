package dev.penstock.schedules.generate.vshaped;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** The blocks of V-Half and V-Min against all others. */
class VShapedBlockTest {
    private static final int LONGEST_STRIDE = 3;
    private static final VPass[] IN_SLOTS = {
        VPass.FORWARD_LOW, VPass.FORWARD_HIGH, VPass.INPUT_HIGH, VPass.INPUT_LOW
    };

    private static List<VShapedBlock> everyBlock(int ranks) {
        var blocks = new ArrayList<VShapedBlock>();
        int strides = LONGEST_STRIDE * LONGEST_STRIDE * LONGEST_STRIDE * LONGEST_STRIDE;
        int turns = VShapedBlock.PERIOD * VShapedBlock.PERIOD * VShapedBlock.PERIOD;
        for (int stride = 0; stride < strides; stride++) {
            for (int turn = 0; turn < turns; turn++) {
                blocks.add(
                        new VShapedBlock(
                                ranks,
                                1 + stride % 3,
                                1 + turn % 6,
                                1 + stride / 3 % 3,
                                1 + turn / 6 % 6,
                                1 + stride / 9 % 3,
                                1 + turn / 36,
                                1 + stride / 27));
            }
        }
        return blocks.stream().filter(VShapedBlockTest::repeatsWithoutMeeting).toList();
    }

    private static boolean repeatsWithoutMeeting(VShapedBlock block) {
        for (int rank = 0; rank < block.ranks(); rank++) {
            Set<Integer> taken = new HashSet<>();
            for (VPass pass : IN_SLOTS) {
                taken.add(block.slot(pass, rank) % VShapedBlock.PERIOD);
            }
            if (taken.size() < IN_SLOTS.length) {
                return false;
            }
        }
        return true;
    }

    private static long makespan(Schedule schedule) {
        return ScheduleSimulator.simulate(schedule, CostModel.split(1, 1, 1, 0)).makespanNanos();
    }

    private static long best(int ranks, int limit) {
        var shape = VSchedules.shape(ranks, 2 * ranks);
        return makespan(
                VShapedSearch.best(
                        "any",
                        shape,
                        Collections.nCopies(ranks, OpCosts.unit()),
                        limit,
                        everyBlock(ranks)));
    }

    @Test
    void noOtherBlockUnderTheSameLimitMakesAShorterSchedule() {
        for (int ranks = 1; ranks <= 6; ranks++) {
            var shape = VSchedules.shape(ranks, 2 * ranks);

            assertThat(makespan(VSchedules.half(shape))).isEqualTo(best(ranks, VHalf.limit(ranks)));
            assertThat(makespan(VSchedules.min(shape))).isEqualTo(best(ranks, VMin.limit(ranks)));
        }
    }

    @Test
    void noBlockNeedsLessThanVMin() {
        for (int ranks = 2; ranks <= 6; ranks++) {
            var units = new VUnits(ranks, 3 * ranks);

            assertThat(everyBlock(ranks))
                    .isNotEmpty()
                    .allSatisfy(
                            block ->
                                    assertThat(new VShapedSlots(units, block).peak())
                                            .isGreaterThanOrEqualTo(VMin.limit(units.ranks())));
        }
    }

    @Test
    void aBlockWhosePassesMeetIsRefused() {
        var block = new VShapedBlock(3, 1, 1, 1, 1, 1, 1, 1);

        assertThatThrownBy(() -> new VShapedSlots(new VUnits(3, 2), block))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("puts two ops of rank");
    }
}
