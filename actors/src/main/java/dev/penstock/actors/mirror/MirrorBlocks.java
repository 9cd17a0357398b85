package dev.penstock.actors.mirror;

import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import java.util.ArrayList;
import java.util.List;

/**
 * Many tensors as one row of elements, cut into blocks that travel each as one:
 *
 * <pre>
 *   tensors  |a |b|      c      |d|
 *   blocks   |     0    |    1    |
 * </pre>
 *
 * <p>A model has many small tensors, and a frame's cost is the same for each.
 */
final class MirrorBlocks {
    /** 4 MiB of F32. */
    private static final int MOST_ELEMENTS = 1 << 20;

    /**
     * A part of a tensor in a block.
     *
     * @param tensor a dense row
     * @param offset in the block, in elements
     */
    private record Piece(Tensor tensor, int offset) {}

    private final List<List<Piece>> blocks = new ArrayList<>();
    private final Kernels kernels;

    /**
     * @param tensors dense F32, in the same order on both sides
     * @param blockElements as {@link #blockElements} says
     */
    MirrorBlocks(List<NamedTensor> tensors, int blockElements, Kernels kernels) {
        this.kernels = kernels;
        int filled = blockElements;
        for (NamedTensor named : tensors) {
            Tensor whole = named.tensor();
            for (long at = 0; at < whole.elements(); ) {
                if (filled == blockElements) {
                    blocks.add(new ArrayList<>());
                    filled = 0;
                }
                int count = (int) Math.min(whole.elements() - at, blockElements - filled);
                blocks.getLast().add(new Piece(row(whole, at, count), filled));
                filled += count;
                at += count;
            }
        }
    }

    /**
     * Elements of a block, for a rank whose gradients have so many altogether: one that never
     * travels where nothing is trained, as no memory is empty.
     */
    static int blockElements(long elements) {
        return Math.clamp(elements, 1, MOST_ELEMENTS);
    }

    int count() {
        return blocks.size();
    }

    /**
     * The block as one dense tensor: the memory itself where a single tensor fills it and links can
     * read it, else gathered.
     *
     * @param scratch for a block's elements; links read its staging memory
     */
    Tensor gather(int block, DeviceBuffer scratch) {
        List<Piece> pieces = blocks.get(block);
        if (pieces.size() == 1 && !scratch.isStaged()) {
            return pieces.getFirst().tensor();
        }
        for (Piece piece : pieces) {
            kernels.copy(piece.tensor(), part(scratch, piece));
        }
        return Tensor.of(scratch, DType.F32, 1, elements(block));
    }

    /** Copies a block that arrived in a slot to where its tensors are. */
    void scatter(int block, DeviceBuffer arrived) {
        arrived.beginToDevice((long) elements(block) * DType.F32.bytes());
        arrived.kernelsAwaitCopy();
        for (Piece piece : blocks.get(block)) {
            kernels.copy(part(arrived, piece), piece.tensor());
        }
        // the next block may come into the same slot
        kernels.finish();
    }

    private int elements(int block) {
        Piece last = blocks.get(block).getLast();
        return last.offset() + last.tensor().columns();
    }

    private static Tensor part(DeviceBuffer buffer, Piece piece) {
        return row(
                Tensor.of(
                        buffer, DType.F32, 1, Math.toIntExact(buffer.bytes() / DType.F32.bytes())),
                piece.offset(),
                piece.tensor().columns());
    }

    private static Tensor row(Tensor whole, long first, int count) {
        return new Tensor(
                whole.buffer(),
                whole.offsetBytes() + first * DType.F32.bytes(),
                DType.F32,
                1,
                count,
                count);
    }
}
