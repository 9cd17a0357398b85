package dev.penstock.runtime.checkpoint;

import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.runtime.checkpoint.SavedTensor.Piece;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.safetensors.SafetensorsFile;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.StoredTensor;
import dev.penstock.runtime.safetensors.StoredType;
import dev.penstock.runtime.safetensors.TensorFacts;
import dev.penstock.runtime.safetensors.TensorSource;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Stream;

/**
 * The state in a checkpoint as one set of tensors, regardless of which rank wrote which piece of
 * them: parameters by their names, the optimizer's moments under {@code optimizer.m.NAME} and
 * {@code optimizer.v.NAME}.
 */
public final class CheckpointReader implements ModelTensors {
    private static final int SHOWN = 20;

    private final Path path;
    private final List<SafetensorsFile> files;
    private final Map<String, SavedTensor> tensors;

    /** Moments that are in no file. */
    private final Map<String, TensorSource> zeros;

    private final Consumer<Path> check;
    private final Set<Path> checked = new HashSet<>();

    private CheckpointReader(
            Path path,
            List<SafetensorsFile> files,
            Map<String, SavedTensor> tensors,
            Map<String, TensorSource> zeros,
            Consumer<Path> check) {
        this.check = check;
        this.path = path;
        this.files = files;
        this.tensors = Collections.unmodifiableMap(tensors);
        this.zeros = Collections.unmodifiableMap(zeros);
    }

    /**
     * Opens files that hold a set of tensors together.
     *
     * @param path of the folder that they are in, for messages
     * @throws StoredFileException if one is malformed, or if the pieces of a tensor leave a hole or
     *     overlap
     */
    public static CheckpointReader open(Path path, List<Path> files) {
        List<SafetensorsFile> open = new ArrayList<>();
        try {
            Map<String, SavedTensor> tensors = new LinkedHashMap<>();
            for (Path each : files) {
                SafetensorsFile file = SafetensorsFile.open(each);
                open.add(file);
                for (Piece piece : pieces(file)) {
                    tensors.computeIfAbsent(piece.stored().name(), _ -> new SavedTensor())
                            .add(piece);
                }
            }
            requireCoverage(path, tensors.values());
            return new CheckpointReader(path, open, tensors, Map.of(), _ -> {});
        } catch (StoredFileException e) {
            open.forEach(SafetensorsFile::close);
            throw e;
        }
    }

    /**
     * The same, which has each file checked before anything is copied from it; this one is not to
     * be used any more.
     *
     * @param check throws what is wrong with a file
     */
    CheckpointReader checking(Consumer<Path> check) {
        return new CheckpointReader(path, files, tensors, zeros, check);
    }

    /**
     * The same as the state of a run that has not done a step: if the files have no moments, which
     * weights from elsewhere do not, those of every tensor are zero. This one is not to be used any
     * more.
     */
    CheckpointReader atBeginning() {
        Map<String, TensorSource> moments = new LinkedHashMap<>();
        for (SavedTensor tensor : tensors.values()) {
            for (String kind : List.of(ModelFit.FIRST_MOMENT, ModelFit.SECOND_MOMENT)) {
                if (tensor.name().startsWith(kind)) {
                    return this;
                }
                String name = kind + tensor.name();
                moments.put(name, TensorSource.zeros(name, StoredType.F32, tensor.shape()));
            }
        }
        return new CheckpointReader(path, files, tensors, moments, check);
    }

    private void check(Path file) {
        synchronized (checked) {
            if (!checked.contains(file)) {
                check.accept(file);
                checked.add(file);
            }
        }
    }

    /** Whether runs hold state in such elements: frozen matrices may be in BF16 or F16. */
    private static boolean ofRuns(StoredType type) {
        return type == StoredType.F32 || type == StoredType.BF16 || type == StoredType.F16;
    }

    private static List<Piece> pieces(SafetensorsFile file) {
        String note = file.metadata().get(PieceNote.KEY);
        Map<String, TensorPiece> places =
                note == null ? Map.of() : PieceNote.parse(file.path(), note);
        List<Piece> pieces = new ArrayList<>();
        for (StoredTensor tensor : file.tensors()) {
            TensorPiece place = places.get(tensor.name());
            if (place == null) {
                place = whole(file.path(), tensor);
            } else if (place.elements() != tensor.elements() || !ofRuns(tensor.type())) {
                throw new StoredFileException(
                        file.path(),
                        "%s: expected %d elements of F32, got %s %s"
                                .formatted(
                                        tensor.name(),
                                        place.elements(),
                                        tensor.type(),
                                        tensor.shape()));
            }
            pieces.add(new Piece(file.path(), place, tensor));
        }
        return pieces;
    }

    private static TensorPiece whole(Path file, StoredTensor tensor) {
        try {
            return TensorPiece.all(tensor.shape().isEmpty() ? List.of(1) : tensor.shape());
        } catch (ArithmeticException e) { // without elements any number of rows takes no bytes
            throw new StoredFileException(
                    file,
                    "%s: no tensor has the shape %s".formatted(tensor.name(), tensor.shape()),
                    e);
        }
    }

    private static void requireCoverage(Path path, Collection<SavedTensor> tensors) {
        List<String> problems =
                tensors.stream().map(SavedTensor::problem).flatMap(Optional::stream).toList();
        if (!problems.isEmpty()) {
            List<String> shown = problems.subList(0, Math.min(SHOWN, problems.size()));
            String more =
                    problems.size() > SHOWN
                            ? "%n  and %d more tensors".formatted(problems.size() - SHOWN)
                            : "";
            throw new StoredFileException(
                    path,
                    "the files do not add up to whole tensors:\n  "
                            + String.join("\n  ", shown)
                            + more);
        }
    }

    /** Returns how many tensors a file has at least a piece of. */
    public int tensorsIn(String file) {
        return (int) piecesOf(file).count();
    }

    /** Returns how many of them it does not have as a whole. */
    public int piecesIn(String file) {
        return (int) piecesOf(file).filter(piece -> !piece.place().isWhole()).count();
    }

    private Stream<Piece> piecesOf(String file) {
        return tensors.values().stream()
                .flatMap(tensor -> tensor.pieces().stream())
                .filter(piece -> piece.file().endsWith(file));
    }

    /**
     * Compares parameters and the optimizer's state with a model before anything is loaded.
     *
     * @throws StoredFileException with every tensor that is missing, superfluous or of another
     *     shape
     */
    public void requireState(ModelConfig model) {
        new ModelFit(this).parameters(model).moments(model).check();
    }

    @Override
    public Path path() {
        return path;
    }

    @Override
    public Collection<? extends TensorFacts> tensors() {
        List<TensorFacts> all = new ArrayList<>(tensors.values());
        all.addAll(zeros.values());
        return all;
    }

    @Override
    public Optional<? extends TensorFacts> find(String name) {
        SavedTensor saved = tensors.get(name);
        return saved == null ? Optional.ofNullable(zeros.get(name)) : Optional.of(saved);
    }

    @Override
    public Optional<StoredTensor> read(String name, Arena arena) {
        SavedTensor saved = tensors.get(name);
        return saved == null
                ? Optional.ofNullable(zeros.get(name)).map(zero -> filled(zero, arena))
                : Optional.of(saved.read(arena));
    }

    private static StoredTensor filled(TensorSource zero, Arena arena) {
        MemorySegment data = arena.allocate(zero.bytes());
        return new StoredTensor(zero.name(), zero.type(), zero.shape(), data);
    }

    @Override
    public Optional<TensorSource> source(String name) {
        SavedTensor saved = tensors.get(name);
        return saved == null ? Optional.ofNullable(zeros.get(name)) : Optional.of(saved.source());
    }

    @Override
    public void copy(String name, TensorPiece piece, MemorySegment destination) {
        if (zeros.containsKey(name)) {
            destination.asSlice(0, piece.elements() * Float.BYTES).fill((byte) 0);
            return;
        }
        SavedTensor tensor = tensors.get(name);
        if (tensor == null) {
            throw new StoredFileException(path, "no tensor '" + name + "'");
        }
        tensor.filesOf(piece).forEach(this::check);
        tensor.copyTo(piece, destination);
    }

    @Override
    public void requireWhole() {
        files.forEach(SafetensorsFile::requireWhole);
    }

    @Override
    public void close() {
        files.forEach(SafetensorsFile::close);
    }
}
