package dev.penstock.actors.dataplane.aeron;

import dev.penstock.actors.dataplane.ChannelKey;
import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Enabled;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;

/**
 * A chunk of a tensor that entered or left a log, in Java Flight Recorder; there may be hundreds of
 * thousands a second, so a recording has to ask for them.
 */
@Name("penstock.Frame")
@Label("Frame")
@Category("Penstock")
@Description("A chunk of a tensor that was sent or received")
@StackTrace(false)
@Enabled(false)
final class FrameEvent extends Event {
    private static final FrameEvent ASKED = new FrameEvent();

    @Label("Sent")
    boolean sent;

    @Label("Sender")
    int fromRank;

    @Label("Channel")
    String channel = "";

    @Label("Size")
    @DataAmount
    long bytes;

    /** Records a frame, if a recording wants them. */
    static void record(boolean sent, int fromRank, ChannelKey channel, long bytes) {
        if (ASKED.isEnabled()) {
            var event = new FrameEvent();
            event.sent = sent;
            event.fromRank = fromRank;
            event.channel = ChannelNames.of(channel);
            event.bytes = bytes;
            event.commit();
        }
    }
}
