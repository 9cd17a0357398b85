package dev.penstock.actors.collective.shared;

import dev.penstock.actors.collective.CollectiveKind;
import dev.penstock.actors.collective.FlatTensor;
import dev.penstock.actors.collective.ShardMap;
import dev.penstock.actors.collective.SteppedCollective;
import dev.penstock.cuda.device.Tensor;

/** One collective of a {@link SharedMemoryGroup}, as one member sees it. */
final class SharedMemoryCollective implements SteppedCollective {
    private final SharedMemoryGroup group;
    private final long number;
    private final CollectiveKind kind;
    private final Tensor whole;
    private final ShardMap map;
    private final Meeting meeting;
    private final boolean[] copied;
    private boolean summed;
    private boolean finished;
    private boolean done;

    SharedMemoryCollective(
            SharedMemoryGroup group, long number, CollectiveKind kind, Tensor whole, ShardMap map) {
        this.group = group;
        this.number = number;
        this.kind = kind;
        this.whole = whole;
        this.map = map;
        this.meeting = group.room().meeting(number, kind, map, whole.type());
        this.copied = new boolean[map.parts()];
        copied[group.index()] = true;
        group.kernels().finish();
        meeting.open(group.index(), kind, whole);
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
        if (!finished) {
            work();
        }
        done = finished && meeting.firstBehind(Meeting.FINISHED) < 0;
        if (done) {
            group.room().adjourn(number);
        } else {
            group.room().failIfAnyLeft();
        }
        return done;
    }

    private void work() {
        if (kind.sums() && !summed) {
            if (meeting.firstBehind(Meeting.HERE) >= 0) {
                return;
            }
            sumOwnPart();
            summed = true;
            meeting.reach(group.index(), Meeting.SUMMED);
        }
        if (!kind.gathers() || copyOthers()) {
            finished = true;
            meeting.reach(group.index(), Meeting.FINISHED);
        }
    }

    private void sumOwnPart() {
        long to = map.to(group.index());
        for (long at = map.from(group.index()); at < to; at += SharedMemoryGroup.BLOCK_ELEMENTS) {
            long from = at;
            long count = Math.min(SharedMemoryGroup.BLOCK_ELEMENTS, to - from);
            group.touch(() -> sum(from, count));
            countAddends(count * whole.type().bytes());
        }
    }

    /**
     * Adds in member order. What comes before this member's own addend is added up where the first
     * member's lies, which is of no use to anybody else any more.
     */
    private void sum(long from, long count) {
        int me = group.index();
        Tensor own = FlatTensor.stretch(whole, from, count);
        if (me > 0) {
            Tensor before = FlatTensor.stretch(meeting.tensor(0), from, count);
            for (int member = 1; member < me; member++) {
                add(member, from, count, before);
            }
            group.kernels().add(before, own); // the order of two addends does not matter
        }
        for (int member = me + 1; member < map.parts(); member++) {
            add(member, from, count, own);
        }
    }

    private void countAddends(long bytes) {
        for (int member = 0; member < map.parts(); member++) {
            if (member != group.index()) {
                group.room().countSent(member, kind, bytes);
            }
        }
    }

    private void add(int member, long from, long count, Tensor sum) {
        group.kernels().add(FlatTensor.stretch(meeting.tensor(member), from, count), sum);
    }

    private boolean copyOthers() {
        int ready = kind.sums() ? Meeting.SUMMED : Meeting.HERE;
        boolean all = true;
        for (int member = 0; member < map.parts(); member++) {
            if (!copied[member] && meeting.has(member, ready)) {
                group.copy(
                        kind,
                        member,
                        meeting.tensor(member),
                        whole,
                        map.from(member),
                        map.to(member));
                copied[member] = true;
            }
            all &= copied[member];
        }
        return all;
    }

    @Override
    public String describe() {
        int behind = meeting.firstBehind(Meeting.HERE);
        if (behind < 0) {
            behind = meeting.firstBehind(Meeting.FINISHED);
        }
        String text = "%s %d of ranks %s".formatted(kind, number, group.room().ranks());
        return behind < 0 ? text : text + " waits for rank " + group.room().ranks().get(behind);
    }
}
