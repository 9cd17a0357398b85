package dev.penstock.runtime.model;

import dev.penstock.runtime.checkpoint.CheckpointException;
import dev.penstock.runtime.checkpoint.SafetensorsFile;
import dev.penstock.runtime.checkpoint.StoredTensor;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Optional;

/**
 * First values from safetensors files: the shards of a checkpoint, or a GPT-2 in Hugging Face's
 * format (with or without its {@code transformer.} prefix). The files must stay open while stages
 * are built.
 */
public final class SafetensorsParameters implements ParameterSource {
    private static final String PREFIX = "transformer.";

    private final List<SafetensorsFile> files;

    /**
     * @param files searched in this order
     */
    public SafetensorsParameters(List<SafetensorsFile> files) {
        this.files = List.copyOf(files);
    }

    /**
     * {@inheritDoc}
     *
     * @throws CheckpointException if a file has the tensor in another shape or not as real numbers
     */
    @Override
    public boolean fill(String name, List<Integer> shape, MemorySegment destination) {
        for (SafetensorsFile file : files) {
            Optional<StoredTensor> stored = file.find(name).or(() -> file.find(PREFIX + name));
            if (stored.isPresent()) {
                check(file, stored.get(), shape);
                stored.get().copyTo(destination);
                return true;
            }
        }
        return false;
    }

    private static void check(SafetensorsFile file, StoredTensor stored, List<Integer> shape) {
        if (!stored.isFloatingPoint() || !stored.shape().equals(shape)) {
            throw new CheckpointException(
                    file.path(),
                    "reading '%s': the model needs real numbers of shape %s, the file has %s of shape %s; make the model's settings those of the file"
                            .formatted(stored.name(), shape, stored.type(), stored.shape()));
        }
    }
}
