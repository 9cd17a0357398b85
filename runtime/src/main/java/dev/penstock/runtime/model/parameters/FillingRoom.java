package dev.penstock.runtime.model.parameters;

import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.cuda.device.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Where the host puts the values of parameters: in their own memory if it can address that,
 * otherwise in a room as large as the largest, from where they are copied.
 */
final class FillingRoom implements AutoCloseable {
    private @Nullable Arena arena;
    private MemorySegment room = MemorySegment.NULL;

    /**
     * Fills a dense tensor.
     *
     * @param piece what it holds; rows may follow that pad a table
     * @param filler is given memory for all elements, of any content, and stores those of the piece
     *     or answers false
     * @return the filler's answer; if false, the tensor is what it was
     */
    boolean fill(Tensor tensor, TensorPiece piece, Predicate<MemorySegment> filler) {
        if (tensor.buffer().isHostMemory()) {
            return filler.test(tensor.segment());
        }
        reserve(tensor.bytes());
        if (!filler.test(room.asSlice(0, tensor.bytes()))) {
            return false;
        }
        long bytes = piece.elements() * tensor.type().bytes();
        tensor.buffer().write(tensor.offsetBytes(), room.asSlice(0, bytes));
        return true;
    }

    private void reserve(long bytes) {
        if (bytes > room.byteSize()) {
            close();
            Arena grown = Arena.ofShared(); // several threads fill it
            arena = grown;
            room = grown.allocate(bytes, Float.BYTES);
        }
    }

    @Override
    public void close() {
        if (arena != null) {
            arena.close();
        }
    }
}
