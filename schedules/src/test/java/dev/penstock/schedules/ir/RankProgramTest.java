package dev.penstock.schedules.ir;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

class RankProgramTest {
    private static final WorkUnit UNIT = new WorkUnit(3, 5, 7);
    private static final Op.Forward FORWARD = new Op.Forward(UNIT);

    /** Every kind of op; indices at both ends of what fits into a code, and beyond. */
    private static List<Op> everyOp() {
        var ops = new ArrayList<Op>();
        for (WorkUnit unit :
                List.of(
                        UNIT,
                        new WorkUnit(0, 0, 0),
                        new WorkUnit((1 << 20) - 1, (1 << 24) - 1, (1 << 16) - 1),
                        new WorkUnit(1 << 20, 0, 0),
                        new WorkUnit(0, 1 << 24, 0),
                        new WorkUnit(0, 0, 1 << 16),
                        new WorkUnit(Integer.MAX_VALUE, Integer.MAX_VALUE, Integer.MAX_VALUE))) {
            ops.add(new Op.Forward(unit));
            ops.add(new Op.Backward(unit));
            ops.add(new Op.BackwardInput(unit));
            ops.add(new Op.BackwardWeight(unit));
            ops.add(new Op.Recompute(unit));
            ops.add(new Op.Overlapped(FORWARD, new Op.BackwardInput(unit)));
            ops.add(new Op.SendActivation(unit));
            ops.add(new Op.ReceiveActivation(unit));
            ops.add(new Op.SendGradient(unit));
            ops.add(new Op.ReceiveGradient(unit));
        }
        ops.add(new Op.GatherParameters(2, LayerRange.ALL));
        ops.add(new Op.ReleaseParameters(2, new LayerRange(1, 4)));
        ops.add(new Op.ReduceGradients(9));
        return ops;
    }

    @Test
    void holdsEveryOpAsItIs() {
        List<Op> ops = everyOp();

        List<Op> held = new RankProgram(0, ops).ops();

        assertThat(held).containsExactlyElementsOf(ops);
        assertThat(held).isEqualTo(ops).hasSameHashCodeAs(ops).hasToString(ops.toString());
        assertThat(ops).isEqualTo(held);
    }

    @Test
    void differsFromAProgramWithAnotherOpAnywhere() {
        List<Op> ops = everyOp();
        var program = new RankProgram(0, ops);

        for (int i = 0; i < ops.size(); i++) {
            var changed = new ArrayList<>(ops);
            changed.set(i, new Op.ReduceGradients(1_000));

            assertThat(new RankProgram(0, changed)).isNotEqualTo(program);
        }
        Collections.reverse(ops);
        assertThat(new RankProgram(0, ops)).isNotEqualTo(program);
    }

    @Test
    void keepsNothingOfTheListItCameFrom() {
        List<Op> ops = everyOp();
        var program = new RankProgram(0, ops);

        ops.clear();

        assertThat(program.ops()).isEqualTo(everyOp());
        assertThatThrownBy(() -> program.ops().add(FORWARD))
                .isInstanceOf(UnsupportedOperationException.class);
        assertThatThrownBy(() -> program.ops().removeFirst())
                .isInstanceOf(UnsupportedOperationException.class);
    }

    @Test
    void aWriterGrowsAndGivesWhatIsThereSoFar() {
        var writer = new ProgramWriter(4, 0);
        List<Op> ops = everyOp();

        for (int i = 0; i < ops.size(); i++) {
            assertThat(writer.program()).isEqualTo(new RankProgram(4, ops.subList(0, i)));
            writer.add(ops.get(i));
        }
        assertThat(writer.program()).isEqualTo(new RankProgram(4, ops));
    }
}
