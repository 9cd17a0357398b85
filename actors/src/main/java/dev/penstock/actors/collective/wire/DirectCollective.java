package dev.penstock.actors.collective.wire;

import dev.penstock.actors.collective.CollectiveKind;
import dev.penstock.actors.collective.ShardMap;
import dev.penstock.actors.collective.SteppedCollective;
import dev.penstock.cuda.device.Tensor;
import java.util.Arrays;

/**
 * One collective of a {@link DataPlaneGroup} in direct form, as one member sees it: every member
 * sends the blocks of each part to the member whose part it is, who adds them up in member order,
 * and the sums to all others.
 */
final class DirectCollective implements SteppedCollective {
    private static final long NOT_BEGUN = -1;

    private final DataPlaneGroup group;
    private final long number;
    private final CollectiveKind kind;
    private final PartBlocks blocks;
    private final int parts;
    private final int me;

    /** By member: blocks of its part sent to it, blocks of this part sent to it. */
    private final int[] addendsSent;

    private final int[] sumsSent;

    /** By member: blocks of its part that came. */
    private final int[] sumsCame;

    /** By member: blocks sent to it before this collective. */
    private final long[] sentBefore;

    /** Blocks of its own part that are whole sums. */
    private int summed;

    /** Who adds next to the block after them. */
    private int adds;

    /** Where the sum of the addends before its own one lies, with the first member. */
    private int heldSlot = BlockChannel.NONE;

    private boolean done;

    DirectCollective(
            DataPlaneGroup group, long number, CollectiveKind kind, Tensor whole, ShardMap map) {
        this.group = group;
        this.number = number;
        this.kind = kind;
        this.blocks = new PartBlocks(whole, map);
        this.parts = map.parts();
        this.me = group.index();
        this.addendsSent = new int[parts];
        this.sumsSent = new int[parts];
        this.sumsCame = new int[parts];
        this.sentBefore = new long[parts];
        Arrays.fill(sentBefore, NOT_BEGUN);
        this.summed = kind.sums() ? 0 : blocks.of(me);
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
        boolean all = true;
        for (int member = 0; member < parts; member++) {
            if (member != me) {
                all &= send(member);
            }
        }
        while (summed < blocks.of(me) && addOne()) {}
        all &= summed == blocks.of(me);
        for (int member = 0; kind.gathers() && member < parts; member++) {
            if (member != me) {
                all &= receiveSums(member);
            }
        }
        done = all && group.everythingIsVerified();
        return done;
    }

    /** Whether all that this member is to get has been sent. */
    private boolean send(int member) {
        if (sentBefore[member] == NOT_BEGUN) {
            sentBefore[member] = group.channel(member).sent();
        }
        int addends = kind.sums() ? blocks.of(member) : 0;
        while (addendsSent[member] < addends) {
            int next = addendsSent[member];
            if (!group.send(kind, member, number, false, next, blocks.tensor(member, next))) {
                return false;
            }
            addendsSent[member]++;
        }
        int sums = kind.gathers() ? blocks.of(me) : 0;
        while (sumsSent[member] < Math.min(sums, summed)) {
            int next = sumsSent[member];
            if (!group.send(kind, member, number, true, next, blocks.tensor(me, next))) {
                return false;
            }
            sumsSent[member]++;
        }
        return sumsSent[member] == sums;
    }

    /**
     * Adds one member's addend to the first block that is no whole sum, in member order. What comes
     * before this member's own is added up in the first member's slot.
     *
     * @return whether there was one to add
     */
    private boolean addOne() {
        Tensor own = blocks.tensor(me, summed);
        if (adds == me) {
            if (me > 0) {
                group.kernels().add(group.channel(0).slot(heldSlot, own), own);
                group.kernels().finish();
                group.channel(0).release(heldSlot);
            }
        } else {
            BlockChannel channel = group.channel(adds);
            int slot = channel.take(number, false, summed, own);
            if (slot == BlockChannel.NONE) {
                return false;
            }
            if (adds == 0) {
                heldSlot = slot;
            } else {
                Tensor sum = adds < me ? group.channel(0).slot(heldSlot, own) : own;
                group.kernels().add(channel.slot(slot, own), sum);
                group.kernels().finish();
                channel.release(slot);
            }
        }
        if (++adds == parts) {
            adds = 0;
            summed++;
        }
        return true;
    }

    /** Whether all of the member's part came. */
    private boolean receiveSums(int member) {
        BlockChannel channel = group.channel(member);
        while (sumsCame[member] < blocks.of(member)) {
            int next = sumsCame[member];
            boolean mayChange = !kind.sums() || channel.isVerified(sentBefore[member] + next + 1);
            if (!mayChange) {
                return false;
            }
            Tensor into = blocks.tensor(member, next);
            int slot = channel.take(number, true, next, into);
            if (slot == BlockChannel.NONE) {
                return false;
            }
            group.kernels().copy(channel.slot(slot, into), into);
            group.kernels().finish();
            channel.release(slot);
            sumsCame[member]++;
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
        if (summed < blocks.of(me) && adds != me) {
            return adds;
        }
        for (int member = 0; member < parts; member++) {
            boolean behind =
                    (kind.gathers() && sumsCame[member] < blocks.of(member))
                            || (kind.sums() && addendsSent[member] < blocks.of(member))
                            || (kind.gathers() && sumsSent[member] < blocks.of(me));
            if (member != me && behind) {
                return member;
            }
        }
        return -1;
    }
}
