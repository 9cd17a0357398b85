package dev.penstock.runtime.checkpoint;

import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.shape.AdapterPlace;
import dev.penstock.runtime.model.shape.Adapters;
import dev.penstock.runtime.model.shape.FineTuning;
import dev.penstock.runtime.safetensors.StoredTensor;
import dev.penstock.runtime.safetensors.StoredType;
import dev.penstock.runtime.safetensors.TensorFacts;
import dev.penstock.runtime.safetensors.TensorSource;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * A model with the adapters of a checkpoint added to its matrices: {@code W + alpha / rank A B},
 * computed in double precision and rounded once. A merged matrix is in memory only while it is
 * read. Adapters and moments are not seen.
 */
public final class MergedTensors implements ModelTensors {
    private static final ValueLayout.OfFloat F32 =
            ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    /** A branch beside the columns of a matrix from the given one on. */
    private record Branch(String inner, String outer, int firstColumn, int columns) {}

    /** A matrix before it is read. */
    private record Merged(String name, StoredType type, List<Integer> shape, MergedTensors all)
            implements TensorSource {
        @Override
        public Reading open() {
            Arena arena = Arena.ofShared();
            return new HeldReading(all.read(name, arena).orElseThrow().open(), arena);
        }
    }

    private final ModelTensors source;
    private final Adapters adapters;
    private final Map<String, List<Branch>> branches = new LinkedHashMap<>();

    private MergedTensors(ModelTensors source, ModelConfig model, Adapters adapters) {
        this.source = source;
        this.adapters = adapters;
        for (int layer = 0; layer < model.shape().layers(); layer++) {
            for (AdapterPlace place : adapters.places()) {
                branches.computeIfAbsent(
                                "h.%d.%s.weight".formatted(layer, place.linear()),
                                _ -> new ArrayList<>())
                        .add(
                                new Branch(
                                        place.inner(layer),
                                        place.outer(layer),
                                        place.firstColumn(),
                                        place.columns()));
            }
        }
    }

    /**
     * Returns the tensors of a model without adapters.
     *
     * @param source the tensors with adapters, if the model has any; closed with what is returned
     */
    public static ModelTensors of(ModelTensors source, ModelConfig model) {
        return model.fineTuning()
                .adapters()
                .<ModelTensors>map(adapters -> new MergedTensors(source, model, adapters))
                .orElse(source);
    }

    @Override
    public Path path() {
        return source.path();
    }

    private static boolean isSeen(String name) {
        return !FineTuning.isAdapter(name) && !name.startsWith("optimizer.");
    }

    @Override
    public Collection<? extends TensorFacts> tensors() {
        return source.tensors().stream().filter(tensor -> isSeen(tensor.name())).toList();
    }

    @Override
    public Optional<? extends TensorFacts> find(String name) {
        return isSeen(name) ? source.find(name) : Optional.empty();
    }

    @Override
    public Optional<StoredTensor> read(String name, Arena arena) {
        if (!isSeen(name)) {
            return Optional.empty();
        }
        Optional<StoredTensor> own = source.read(name, arena);
        return branches.containsKey(name) ? own.map(matrix -> merged(matrix, arena)) : own;
    }

    private StoredTensor merged(StoredTensor matrix, Arena arena) {
        MemorySegment sum = arena.allocate(matrix.elements() * F32.byteSize(), 64);
        for (long i = 0; i < matrix.elements(); i++) {
            sum.setAtIndex(F32, i, (float) matrix.real(i));
        }
        int wide = matrix.shape().getLast();
        for (Branch branch : branches.getOrDefault(matrix.name(), List.of())) {
            StoredTensor inner = source.read(branch.inner(), arena).orElseThrow();
            StoredTensor outer = source.read(branch.outer(), arena).orElseThrow();
            double[] row = new double[branch.columns()];
            for (int i = 0; i < matrix.shape().getFirst(); i++) {
                multiply(inner, outer, i, row);
                long first = (long) i * wide + branch.firstColumn();
                for (int j = 0; j < row.length; j++) {
                    double own = matrix.real(first + j);
                    sum.setAtIndex(F32, first + j, (float) (own + adapters.scale() * row[j]));
                }
            }
        }
        return new StoredTensor(matrix.name(), StoredType.F32, matrix.shape(), sum);
    }

    private void multiply(StoredTensor inner, StoredTensor outer, int i, double[] row) {
        for (int j = 0; j < row.length; j++) {
            double product = 0;
            for (int k = 0; k < adapters.rank(); k++) {
                product +=
                        inner.real((long) i * adapters.rank() + k)
                                * outer.real((long) k * row.length + j);
            }
            row[j] = product;
        }
    }

    @Override
    public Optional<? extends TensorSource> source(String name) {
        if (!branches.containsKey(name)) {
            return isSeen(name) ? source.source(name) : Optional.empty();
        }
        return source.find(name)
                .map(facts -> new Merged(name, StoredType.F32, facts.shape(), this));
    }

    @Override
    public void copy(String name, TensorPiece piece, MemorySegment destination) {
        if (!branches.containsKey(name)) {
            source.copy(name, piece, destination);
            return;
        }
        try (Arena arena = Arena.ofConfined()) {
            read(name, arena).orElseThrow().copyTo(piece, destination);
        }
    }

    @Override
    public void requireWhole() {
        source.requireWhole();
    }

    @Override
    public void close() {
        source.close();
    }
}
