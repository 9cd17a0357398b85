package dev.penstock.runtime.checkpoint;

import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.safetensors.StoredTensor;
import dev.penstock.runtime.safetensors.StoredType;
import dev.penstock.runtime.safetensors.TensorSource;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A safetensors file about to be written: what one rank holds of the tensors of a stage, whole or
 * in pieces.
 *
 * @param metadata free texts of the header, including the note on the pieces if there are any
 */
public record StageFile(Map<String, String> metadata, List<? extends TensorSource> tensors) {
    /** Returns the file of these tensors, in their order. */
    public static StageFile of(Map<String, String> metadata, List<NamedTensor> state) {
        List<TensorSource> tensors = new ArrayList<>();
        Map<String, TensorPiece> pieces = new LinkedHashMap<>();
        for (NamedTensor named : state) {
            tensors.add(stored(named));
            if (!named.piece().isWhole()) {
                pieces.put(named.name(), named.piece());
            }
        }
        Map<String, String> texts = new LinkedHashMap<>(metadata);
        if (!pieces.isEmpty()) {
            texts.put(PieceNote.KEY, PieceNote.print(pieces));
        }
        return new StageFile(texts, tensors);
    }

    private static TensorSource stored(NamedTensor named) {
        StoredType type =
                switch (named.tensor().type()) {
                    case F32 -> StoredType.F32;
                    case BF16 -> StoredType.BF16;
                    case F16 -> StoredType.F16;
                    case I32 -> StoredType.I32;
                    case I8, DYNAMIC8, DYNAMIC8_POSITIVE ->
                            StoredType.F32; // exactly: see Int8 and Dynamic8
                    case I64 -> throw new IllegalArgumentException("no state: " + named.name());
                };
        TensorPiece piece = named.piece();
        List<Integer> shape =
                piece.isWhole() ? piece.whole() : List.of(Math.toIntExact(piece.elements()));
        Tensor tensor = named.tensor();
        if (tensor.type().isScaled()) {
            return new ScaledTensor(named.name(), shape, tensor);
        }
        if (!tensor.buffer().isHostMemory()) {
            return new DeviceTensor(named.name(), type, shape, tensor);
        }
        // rows that pad a table are not part of the piece
        MemorySegment data = tensor.segment().asSlice(0, piece.elements() * type.bytes());
        return new StoredTensor(named.name(), type, shape, data);
    }

    /**
     * Returns the name of the file of a rank that holds a stage, without an ending: {@code
     * stage-1}, and if several ranks hold the stage {@code stage-1-tensor-1}, {@code
     * stage-1-tensor-1-data-2} for those that are not the first of them.
     */
    public static String name(int stage, RankPlace place) {
        return "stage-%d%s%s%s"
                .formatted(
                        stage,
                        part("tensor", place.tensor()),
                        part("context", place.context()),
                        part("data", place.data()));
    }

    private static String part(String direction, int index) {
        return index == 0 ? "" : "-%s-%d".formatted(direction, index);
    }
}
