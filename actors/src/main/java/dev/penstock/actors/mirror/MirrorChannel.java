package dev.penstock.actors.mirror;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.FrameKind;
import dev.penstock.actors.spi.TrainedState;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Kernels;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/**
 * The way from a rank to its mirror: its channel, and how its tensors are cut into blocks, the same
 * on both sides.
 */
final class MirrorChannel {
    /** Blocks under way and not taken. */
    static final int CREDITS = 2;

    private final ChannelKey key;
    private final int blockElements;
    private final Map<MirrorPart, MirrorBlocks> blocks = new EnumMap<>(MirrorPart.class);

    /**
     * @param rank the mirrored one
     * @param states of its stages or of their mirrors, rising
     */
    MirrorChannel(int rank, List<TrainedState> states, Kernels kernels) {
        this.key = new ChannelKey(FrameKind.MIRROR, rank, rank);
        long elements =
                states.stream()
                        .flatMap(state -> state.gradients().stream())
                        .mapToLong(named -> named.tensor().elements())
                        .sum();
        this.blockElements = MirrorBlocks.blockElements(elements);
        for (MirrorPart part : MirrorPart.values()) {
            var tensors = states.stream().flatMap(state -> part.of(state).stream()).toList();
            blocks.put(part, new MirrorBlocks(tensors, blockElements, kernels));
        }
    }

    ChannelKey key() {
        return key;
    }

    FrameKey frame(MirrorPart part, long pass, int block) {
        return new FrameKey(key, pass, block, part.ordinal());
    }

    MirrorBlocks blocks(MirrorPart part) {
        MirrorBlocks found = blocks.get(part);
        if (found == null) {
            throw new IllegalStateException("no blocks for " + part);
        }
        return found;
    }

    /** Bytes of the largest block. */
    long blockBytes() {
        return (long) blockElements * DType.F32.bytes();
    }
}
