package dev.penstock.actors.collective.wire;

import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.actors.collective.CollectiveKind;
import dev.penstock.actors.collective.FlatTensor;
import dev.penstock.actors.collective.SteppedCollective;
import dev.penstock.cuda.device.Tensor;

/** A {@link CollectiveGroup#pass} of a {@link DataPlaneGroup}. */
final class DataPlanePass implements SteppedCollective {
    private final DataPlaneGroup group;
    private final long number;
    private final Tensor sent;
    private final Tensor received;
    private final BlockChannel next;
    private final BlockChannel previous;
    private final long blockElements;
    private final int blocks;
    private int blocksSent;
    private int blocksCame;
    private boolean done;

    DataPlanePass(DataPlaneGroup group, long number, Tensor sent, Tensor received) {
        this.group = group;
        this.number = number;
        this.sent = sent;
        this.received = received;
        next = group.channel(group.next());
        previous = group.channel(group.previous());
        blockElements = BlockChannel.BLOCK_BYTES / sent.type().bytes();
        blocks = Math.toIntExact((sent.elements() + blockElements - 1) / blockElements);
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
        while (blocksSent < blocks && send()) {
            blocksSent++;
        }
        while (blocksCame < blocks && receive()) {
            blocksCame++;
        }
        done = blocksSent == blocks && blocksCame == blocks && next.isVerified(next.sent());
        return done;
    }

    private boolean send() {
        Tensor block = block(sent, blocksSent);
        return group.send(CollectiveKind.PASS, group.next(), number, false, blocksSent, block);
    }

    private boolean receive() {
        Tensor into = block(received, blocksCame);
        int slot = previous.take(number, false, blocksCame, into);
        if (slot == BlockChannel.NONE) {
            return false;
        }
        group.kernels().copy(previous.slot(slot, into), into);
        group.kernels().finish();
        previous.release(slot);
        return true;
    }

    private Tensor block(Tensor tensor, int block) {
        long first = block * blockElements;
        return FlatTensor.stretch(
                tensor, first, Math.min(blockElements, tensor.elements() - first));
    }

    @Override
    public String describe() {
        int behind = blocksCame < blocks ? group.previous() : group.next();
        return "%s %d of ranks %s waits for rank %d"
                .formatted(CollectiveKind.PASS, number, group.ranks(), group.ranks().get(behind));
    }
}
