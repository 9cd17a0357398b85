package dev.penstock.schedules.generate.vshaped;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import dev.penstock.schedules.simulate.Timeline;
import java.util.Locale;

/**
 * The small pictures of the V kinds: a column is the time of a forward, capitals are the low chunk,
 * small letters the high one, b0 a full backward and F4+b0 an overlapped pair.
 */
final class VPicture {
    private static final int COLUMN = 3;

    private VPicture() {}

    /** Forward, backward for the input and for the weights equally long. */
    static String of(Schedule schedule) {
        Timeline timeline = ScheduleSimulator.simulate(schedule, CostModel.split(1, 1, 1, 0));
        var picture = new StringBuilder();
        for (RankProgram program : schedule.programs()) {
            var row = new StringBuilder("rank " + program.rank() + " | ");
            int label = row.length();
            for (int i = 0; i < program.ops().size(); i++) {
                int start = Math.toIntExact(timeline.startNanos(program.rank(), i));
                row.append(" ".repeat(label + COLUMN * start - row.length()));
                row.append(cell(schedule, program.ops().get(i)));
            }
            picture.append(row.toString().stripTrailing()).append('\n');
        }
        return picture.toString();
    }

    static String cell(Schedule schedule, Op op) {
        if (op instanceof Op.Overlapped(Op.Forward forward, Op.Compute partner)) {
            return cell(schedule, forward) + "+" + cell(schedule, partner);
        }
        String letter =
                switch (op) {
                    case Op.Forward _ -> "F";
                    case Op.Backward _ -> "B";
                    case Op.BackwardInput _ -> "I";
                    case Op.BackwardWeight _ -> "W";
                    default -> throw new IllegalArgumentException("no generator makes " + op);
                };
        boolean low = op.stage() < schedule.shape().ranks();
        return (low ? letter : letter.toLowerCase(Locale.ROOT))
                + ((Op.UnitOp) op).unit().microBatch();
    }
}
