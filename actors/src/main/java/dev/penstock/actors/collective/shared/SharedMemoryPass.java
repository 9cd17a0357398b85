package dev.penstock.actors.collective.shared;

import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.actors.collective.CollectiveKind;
import dev.penstock.actors.collective.ShardMap;
import dev.penstock.actors.collective.SteppedCollective;
import dev.penstock.cuda.device.Tensor;
import java.util.List;

/** A {@link CollectiveGroup#pass} of a {@link SharedMemoryGroup}: each fetches for itself. */
final class SharedMemoryPass implements SteppedCollective {
    private final SharedMemoryGroup group;
    private final long number;
    private final Tensor received;
    private final Meeting meeting;
    private final int previous;
    private boolean fetched;
    private boolean done;

    SharedMemoryPass(SharedMemoryGroup group, long number, Tensor sent, Tensor received) {
        this.group = group;
        this.number = number;
        this.received = received;
        this.previous = group.previous();
        var map = new ShardMap(sent.elements(), group.size());
        meeting = group.room().meeting(number, CollectiveKind.PASS, map, sent.type());
        group.kernels().finish();
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
            group.copy(
                    CollectiveKind.PASS,
                    previous,
                    meeting.tensor(previous),
                    received,
                    0,
                    received.elements());
            fetched = true;
            meeting.reach(group.index(), Meeting.FINISHED);
        }
        done = fetched && meeting.firstBehind(Meeting.FINISHED) < 0;
        if (done) {
            group.room().adjourn(number);
        } else {
            group.room().failIfAnyLeft();
        }
        return done;
    }

    @Override
    public String describe() {
        List<Integer> ranks = group.room().ranks();
        String text = "%s %d of ranks %s".formatted(CollectiveKind.PASS, number, ranks);
        int behind = fetched ? meeting.firstBehind(Meeting.FINISHED) : previous;
        return behind < 0 ? text : text + " waits for rank " + ranks.get(behind);
    }
}
