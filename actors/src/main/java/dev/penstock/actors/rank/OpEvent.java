package dev.penstock.actors.rank;

import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;

/**
 * An op of a rank's program in Java Flight Recorder, from when the rank came to it to when it was
 * done. Made only while a recording wants it: {@link #isWanted}.
 */
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

    static boolean isWanted() {
        return ASKED.isEnabled();
    }
}
