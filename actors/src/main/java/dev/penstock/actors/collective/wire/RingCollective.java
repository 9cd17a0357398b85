package dev.penstock.actors.collective.wire;

import dev.penstock.actors.collective.CollectiveKind;
import dev.penstock.actors.collective.ShardMap;
import dev.penstock.actors.collective.SteppedCollective;
import dev.penstock.cuda.device.Tensor;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.stream.IntStream;

/**
 * One collective of a {@link DataPlaneGroup} in ring form, as one member sees it. Sums are added up
 * on the way from the first member to the last, and continue from there:
 *
 * <pre>
 *   all-reduce       every block   0 -> 1 -> 2 -> 3 (sum) -> 0 -> 1 -> 2
 *   reduce-scatter   a block of 1  0 -> 1 -> 2 -> 3 (sum) -> 1
 *   all-gather       a block of 1       1 -> 2 -> 3 -> 0
 * </pre>
 *
 * Whatever arrives is taken at once, since it is added or copied to where it belongs in this
 * member's own tensor: nobody waits for a slot that waits for another.
 */
final class RingCollective implements SteppedCollective {
    private final DataPlaneGroup group;
    private final long number;
    private final CollectiveKind kind;
    private final PartBlocks blocks;
    private final int parts;
    private final int me;
    private final int last;

    /** Blocks that are added up here, in their order. */
    private final int toAdd;

    /** What comes as it is to stay, in the order of its coming. */
    private final int[] toCome;

    /** From whom. */
    private final int source;

    /** By member: what is to be sent there, in the order of its sending. */
    private final List<Deque<Ready>> outboxes;

    /** By block: which of all blocks sent to the next member its partial sum was. */
    private final long[] partialSent;

    private int added;
    private int came;
    private boolean done;

    private record Ready(int block, boolean summed) {}

    RingCollective(
            DataPlaneGroup group, long number, CollectiveKind kind, Tensor whole, ShardMap map) {
        this.group = group;
        this.number = number;
        this.kind = kind;
        this.blocks = new PartBlocks(whole, map);
        this.parts = map.parts();
        this.me = group.index();
        this.last = parts - 1;
        this.toAdd = kind.sums() ? blocks.all() : 0;
        this.source = kind == CollectiveKind.REDUCE_SCATTER ? last : group.previous();
        this.toCome = toCome().toArray();
        this.outboxes =
                IntStream.range(0, parts).<Deque<Ready>>mapToObj(_ -> new ArrayDeque<>()).toList();
        this.partialSent = new long[toAdd];
        Arrays.fill(partialSent, Long.MAX_VALUE);
        if (!kind.sums()) {
            blocksOf(me).forEach(this::handOn);
        }
    }

    private IntStream blocksOf(int part) {
        return IntStream.range(blocks.first(part), blocks.first(part) + blocks.of(part));
    }

    private IntStream toCome() {
        return switch (kind) {
            case REDUCE_SCATTER -> me == last ? IntStream.empty() : blocksOf(me);
            case ALL_REDUCE -> me == last ? IntStream.empty() : IntStream.range(0, toAdd);
            case ALL_GATHER ->
                    IntStream.range(1, parts)
                            .flatMap(hops -> blocksOf((me + parts - hops) % parts));
            case PASS -> throw new IllegalArgumentException("no collective of parts: " + kind);
        };
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
        while (added < toAdd && addOne()) {
            added++;
        }
        while (came < toCome.length && takeOne()) {
            came++;
        }
        boolean sent = true;
        for (int member = 0; member < parts; member++) {
            sent &= send(member);
        }
        done = sent && added == toAdd && came == toCome.length && group.everythingIsVerified();
        return done;
    }

    /** Adds its own addend to the sum of all before, which goes on. */
    private boolean addOne() {
        if (me > 0) {
            BlockChannel previous = group.channel(me - 1);
            Tensor own = blocks.tensor(added);
            int slot = previous.take(number, false, added, own);
            if (slot == BlockChannel.NONE) {
                return false;
            }
            group.kernels().add(previous.slot(slot, own), own); // two addends: in either order
            group.kernels().finish();
            previous.release(slot);
        }
        if (me < last) {
            outboxes.get(me + 1).add(new Ready(added, false));
        } else {
            handOn(added);
        }
        return true;
    }

    private boolean takeOne() {
        int block = toCome[came];
        boolean mayChange =
                !kind.sums() || group.channel(group.next()).isVerified(partialSent[block]);
        if (!mayChange) {
            return false;
        }
        BlockChannel channel = group.channel(source);
        Tensor into = blocks.tensor(block);
        int slot = channel.take(number, true, block, into);
        if (slot == BlockChannel.NONE) {
            return false;
        }
        group.kernels().copy(channel.slot(slot, into), into);
        group.kernels().finish();
        channel.release(slot);
        handOn(block);
        return true;
    }

    /** A block that is as it is to stay, to whoever gets it from this member. */
    private void handOn(int block) {
        int part = blocks.partOf(block);
        boolean goesOn =
                switch (kind) {
                    case REDUCE_SCATTER -> me == last && part != last;
                    case ALL_REDUCE -> group.next() != last;
                    case ALL_GATHER -> group.next() != part;
                    case PASS -> false;
                };
        if (goesOn) {
            int to = kind == CollectiveKind.REDUCE_SCATTER ? part : group.next();
            outboxes.get(to).add(new Ready(block, true));
        }
    }

    /** Whether nothing is left to send to a member; what was begun goes on first. */
    private boolean send(int member) {
        Deque<Ready> outbox = outboxes.get(member);
        while (!outbox.isEmpty()) {
            Ready next = outbox.getFirst();
            Tensor tensor = blocks.tensor(next.block());
            if (!group.send(kind, member, number, next.summed(), next.block(), tensor)) {
                return false;
            }
            if (!next.summed()) {
                partialSent[next.block()] = group.channel(member).sent();
            }
            outbox.removeFirst();
        }
        return true;
    }

    @Override
    public String describe() {
        String text = "%s %d of ranks %s".formatted(kind, number, group.ranks());
        int behind = awaited();
        return behind < 0 ? text : text + " waits for rank " + group.ranks().get(behind);
    }

    private int awaited() {
        if (added < toAdd) {
            return me - 1;
        }
        if (came < toCome.length) {
            return source;
        }
        return IntStream.range(0, parts)
                .filter(member -> !outboxes.get(member).isEmpty())
                .findFirst()
                .orElse(-1);
    }
}
