package dev.penstock.actors.collective;

import dev.penstock.cuda.device.Tensor;

/** A {@link CollectiveGroup#pass} of a {@link SharedMemoryGroup}: each fetches for itself. */
final class SharedMemoryPass implements SteppedCollective {
    private final SharedMemoryGroup group;
    private final long number;
    private final Tensor received;
    private final Meeting meeting;
    private final int previous;
    private final int next;
    private boolean fetched;
    private boolean done;

    SharedMemoryPass(SharedMemoryGroup group, long number, Tensor sent, Tensor received) {
        this.group = group;
        this.number = number;
        this.received = received;
        this.previous = group.previous();
        this.next = group.next();
        var map = new ShardMap(sent.elements(), group.size());
        meeting = group.room().meeting(number, CollectiveKind.PASS, map, sent.type());
        meeting.open(group.index(), CollectiveKind.PASS, sent);
    }

    @Override
    public boolean advance() {
        if (!done) {
            group.advanceAll();
        }
        return done;
    }

    @Override
    public boolean step() {
        if (!fetched && meeting.has(previous, Meeting.HERE)) {
            group.copy(meeting.tensor(previous), received, 0, received.elements());
            fetched = true;
            meeting.reach(group.index(), Meeting.FINISHED);
        }
        done = fetched && meeting.has(next, Meeting.FINISHED);
        if (done) {
            group.room().adjourn(number, meeting);
        } else {
            group.room().failIfAnyLeft();
        }
        return done;
    }

    @Override
    public String describe() {
        return "%s %d of ranks %s waits for rank %d"
                .formatted(
                        CollectiveKind.PASS,
                        number,
                        group.room().ranks(),
                        group.room().ranks().get(fetched ? next : previous));
    }
}
