package dev.penstock.actors.collective.shared;

import dev.penstock.actors.collective.BlockingWait;
import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.collective.CollectiveKind;
import dev.penstock.actors.collective.FlatTensor;
import dev.penstock.actors.collective.RankWaits;
import dev.penstock.actors.collective.ShardMap;
import dev.penstock.actors.collective.SteppedCollective;
import dev.penstock.actors.collective.SteppedGroup;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Iterator;

/**
 * Members that live in one process and read each other's tensors where they are:
 *
 * <pre>
 *               part 0   part 1   part 2
 *   member 0   | sums  |        |        |     every member sums its part over all tensors, then
 *   member 1   |       |  sums  |        |     each copies the other parts from those that summed
 *   member 2   |       |        |  sums  |     them; a gather alone copies at once
 * </pre>
 */
final class SharedMemoryGroup implements SteppedGroup {
    /** Half a megabyte of F32: a sum stays in the cache from one addend to the next. */
    static final int BLOCK_ELEMENTS = 1 << 17;

    private final MeetingRoom room;
    private final int index;
    private final Kernels kernels;
    private final Duration limit;
    private final BlockingWait wait;

    /** Begun and not done, oldest first; each goes on whichever is asked. */
    private final Deque<SteppedCollective> underWay = new ArrayDeque<>();

    private long begun;

    SharedMemoryGroup(
            MeetingRoom room, int index, Kernels kernels, Duration limit, RankWaits waits) {
        this.room = room;
        this.index = index;
        this.kernels = kernels;
        this.limit = limit;
        this.wait = new BlockingWait(room.ranks().get(index), limit, waits);
    }

    @Override
    public int size() {
        return room.ranks().size();
    }

    @Override
    public int index() {
        return index;
    }

    @Override
    public Collective pass(Tensor sent, Tensor received) {
        FlatTensor.checkPass(sent, received);
        var pass = new SharedMemoryPass(this, begun++, sent, received);
        underWay.add(pass);
        advanceAll();
        return pass;
    }

    @Override
    public Collective begin(CollectiveKind kind, Tensor whole, ShardMap map) {
        FlatTensor.check(kind, whole, map, size());
        var collective = new SharedMemoryCollective(this, begun++, kind, whole, map);
        underWay.add(collective);
        advanceAll();
        return collective;
    }

    /** All that are under way: a member may wait for them in another order than this one. */
    void advanceAll() {
        for (Iterator<SteppedCollective> each = underWay.iterator(); each.hasNext(); ) {
            if (each.next().step()) {
                each.remove();
            }
        }
    }

    MeetingRoom room() {
        return room;
    }

    Kernels kernels() {
        return kernels;
    }

    /** Copies elements of a member's tensor to the same place of one of this member's. */
    void copy(CollectiveKind kind, int member, Tensor from, Tensor to, long first, long end) {
        for (long at = first; at < end; at += BLOCK_ELEMENTS) {
            Tensor source = FlatTensor.stretch(from, at, Math.min(BLOCK_ELEMENTS, end - at));
            Tensor target = FlatTensor.stretch(to, at, source.columns());
            touch(() -> kernels.copy(source, target));
            room.countSent(member, kind, source.bytes());
        }
    }

    /** Kernels over others' tensors: nobody waits for them but this member, here. */
    void touch(Runnable work) {
        room.touch(
                index,
                () -> {
                    work.run();
                    kernels.finish();
                });
    }

    @Override
    public void await(Collective collective) {
        wait.until(collective);
    }

    @Override
    public long sentBytes(CollectiveKind kind) {
        return room.sentBytes(index, kind);
    }

    @Override
    public void close() {
        room.leave(index, limit);
    }
}
