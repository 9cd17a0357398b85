package dev.penstock.actors.mirror;

import dev.penstock.cuda.device.DType;
import java.util.function.IntToLongFunction;

/** Device memory of a rank's {@link MirrorExchange}, known from the model's sizes alone. */
public final class MirrorMemory {
    private MirrorMemory() {}

    /**
     * Bytes of blocks on their way; the mirrors themselves are not among them.
     *
     * @param elements elements of all gradients of a rank
     */
    public static long blockBytes(int rank, MirrorLayout layout, IntToLongFunction elements) {
        long bytes =
                layout.holderOf(rank) == MirrorLayout.NOBODY
                        ? 0
                        : blockBytes(elements.applyAsLong(rank));
        for (int mirrored : layout.heldBy(rank)) {
            bytes += (MirrorChannel.CREDITS + 1) * blockBytes(elements.applyAsLong(mirrored));
        }
        return bytes;
    }

    private static long blockBytes(long elements) {
        return (long) MirrorBlocks.blockElements(elements) * DType.F32.bytes();
    }
}
