package dev.penstock.actors.collective;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.FrameKind;

/** What the members of a group divide. The same ranks may be two groups. */
public enum GroupRole {
    /** A stage's matrices. */
    TENSOR(0),
    /** A sequence's tokens. */
    CONTEXT(1),
    /** Nothing: they hold the same parameters. */
    REPLICAS(2);

    private final int lane;

    GroupRole(int lane) {
        this.lane = lane;
    }

    /** The way from one rank to another in a group of this role, in a run of so many ranks. */
    public ChannelKey channel(int from, int to, int ranks) {
        int first = lane * ranks;
        return new ChannelKey(FrameKind.COLLECTIVE, first + from, first + to);
    }
}
