package dev.penstock.runtime.checkpoint;

import dev.penstock.actors.spi.CheckpointStore.ShardFile;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The state in a checkpoint as one set of tensors, however many stages wrote it: parameters by
 * their names, the optimizer's moments under {@code optimizer.m.NAME} and {@code optimizer.v.NAME}.
 */
public final class CheckpointReader implements ModelTensors {
    private final SavedCheckpoint checkpoint;
    private final List<SafetensorsFile> files;
    private final Map<String, StoredTensor> tensors;

    private CheckpointReader(
            SavedCheckpoint checkpoint,
            List<SafetensorsFile> files,
            Map<String, StoredTensor> tensors) {
        this.checkpoint = checkpoint;
        this.files = files;
        this.tensors = Collections.unmodifiableMap(tensors);
    }

    static CheckpointReader open(SavedCheckpoint checkpoint) {
        List<SafetensorsFile> files = new ArrayList<>();
        Map<String, StoredTensor> tensors = new LinkedHashMap<>();
        try {
            for (ShardFile shard : checkpoint.manifest().shards()) {
                SafetensorsFile file =
                        SafetensorsFile.open(checkpoint.path().resolve(shard.file()));
                files.add(file);
                for (StoredTensor tensor : file.tensors()) {
                    if (tensors.put(tensor.name(), tensor) != null) {
                        throw new CheckpointException(
                                file.path(), tensor.name() + " is in another shard as well");
                    }
                }
            }
        } catch (CheckpointException e) {
            files.forEach(SafetensorsFile::close);
            throw e;
        }
        return new CheckpointReader(checkpoint, files, tensors);
    }

    /** What the manifest says. */
    public Manifest manifest() {
        return checkpoint.manifest();
    }

    /**
     * Compares parameters and the optimizer's state with a model before anything is loaded.
     *
     * @throws CheckpointException with every tensor that is missing, superfluous or of another
     *     shape
     */
    public void requireState(Gpt2Config model) {
        new ModelFit(this).parameters(model).moments(model).check();
    }

    @Override
    public Path path() {
        return checkpoint.path();
    }

    @Override
    public Collection<StoredTensor> tensors() {
        return tensors.values();
    }

    @Override
    public Optional<StoredTensor> find(String name) {
        return Optional.ofNullable(tensors.get(name));
    }

    @Override
    public void close() {
        files.forEach(SafetensorsFile::close);
    }
}
