package dev.penstock.runtime.dashboard;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.render.OpClass;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * What the ops of each program are, for drawing.
 *
 * @param kinds what the numbers of {@link Program#kinds} mean
 */
record ProgramPicture(List<Kind> kinds, List<Program> programs) {
    /** A kind of op: a word that styles it, and words for people. */
    record Kind(String label, String words) {}

    /**
     * Entry i is op i.
     *
     * @param names as the schedule writes them
     * @param units micro-batch, or -1
     */
    record Program(int[] kinds, int[] stages, int[] units, List<String> names) {}

    static ProgramPicture of(Schedule schedule) {
        List<Kind> kinds =
                Arrays.stream(OpClass.values())
                        .map(kind -> new Kind(kind.label(), kind.words()))
                        .toList();
        List<Program> programs = new ArrayList<>();
        for (int rank = 0; rank < schedule.programs().size(); rank++) {
            List<Op> ops = schedule.program(rank).ops();
            var program =
                    new Program(
                            new int[ops.size()],
                            new int[ops.size()],
                            new int[ops.size()],
                            new ArrayList<>());
            for (int i = 0; i < ops.size(); i++) {
                Op op = ops.get(i);
                program.kinds[i] = OpClass.of(op).ordinal();
                program.stages[i] = op.stage();
                program.units[i] = op instanceof Op.UnitOp unit ? unit.unit().microBatch() : -1;
                program.names.add(OpText.print(op, schedule.shape()));
            }
            programs.add(program);
        }
        return new ProgramPicture(kinds, programs);
    }
}
