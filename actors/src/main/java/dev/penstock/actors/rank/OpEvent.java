package dev.penstock.actors.rank;

import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.PipelineShape;
import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import org.jspecify.annotations.Nullable;

/** An event of Java Flight Recorder for one op, from when the rank reached it until it was done. */
@Name("penstock.Op")
@Label("Op")
@Category("Penstock")
@Description("An op of a rank's program, with its waiting")
@StackTrace(false)
final class OpEvent extends Event {
    private static final OpEvent ASKED = new OpEvent();

    @Label("Op")
    String op = "";

    @Label("Rank")
    int rank;

    @Label("Stage")
    int stage;

    @Label("Pass")
    long pass;

    /** Begins an event for an op; returns null, at no cost, while no recording asks for any. */
    static @Nullable OpEvent begin(Op op, PipelineShape shape, int rank, long pass) {
        if (!ASKED.isEnabled()) {
            return null;
        }
        var event = new OpEvent();
        event.op = OpText.print(op, shape);
        event.rank = rank;
        event.stage = op.stage();
        event.pass = pass;
        event.begin();
        return event;
    }
}
