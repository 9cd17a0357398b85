package dev.penstock.runtime.checkpoint;

import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.family.StoredPart;
import dev.penstock.runtime.safetensors.SafetensorsFile;
import dev.penstock.runtime.safetensors.SafetensorsWriter;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.StoredTensor;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Writes a model as transformers reads it: one safetensors file (which it looks for under the name
 * {@code model.safetensors}) and {@code config.json} next to it.
 */
public final class HuggingFaceExport {
    private HuggingFaceExport() {}

    /**
     * Exports the parameters of a model; optimizer state is left out. Names and layouts are those of
     * its family; of a GPT-2 those of the published gpt2 files ({@code wte.weight}, ...); a model with a head of its own gets the
     * {@code transformer.} prefix, since transformers refuses a {@code lm_head.weight} next to bare
     * names.
     *
     * @param weights the file to write; its folder is created if it does not exist; files of the
     *     same names are replaced
     * @throws StoredFileException if the tensors are not those of the model or cannot be written
     */
    public static void write(Path weights, ModelConfig model, ModelTensors source) {
        source.requireParameters(model);
        try (Arena arena = Arena.ofShared()) {
            List<StoredTensor> tensors = tensors(model, source, arena);
            write(weights, model, tensors);
            verify(weights, tensors);
        }
    }

    private static void verify(Path weights, List<StoredTensor> tensors) {
        try (SafetensorsFile written = SafetensorsFile.open(weights)) {
            for (StoredTensor tensor : tensors) {
                if (written.tensor(tensor.name()).data().mismatch(tensor.data()) >= 0) {
                    throw new StoredFileException(
                            weights,
                            tensor.name() + " was read back with different bits; try another disk");
                }
            }
        }
    }

    private static List<StoredTensor> tensors(ModelConfig model, ModelTensors source, Arena arena) {
        List<StoredTensor> tensors = new ArrayList<>();
        for (StoredPart part : model.family().parts(model.shape())) {
            tensors.add(PublishedPart.of(part, source).read(arena));
        }
        return tensors;
    }

    private static void write(Path weights, ModelConfig model, List<StoredTensor> tensors) {
        Map<String, String> metadata = Map.of("format", "pt");
        long bytes = SafetensorsWriter.bytes(metadata, tensors);
        Path partial = weights.resolveSibling(weights.getFileName() + ".incomplete");
        try {
            Files.createDirectories(DurableFiles.folderOf(weights));
            Files.deleteIfExists(partial);
            DiskSpace.require(weights, bytes);
            SafetensorsWriter.write(partial, metadata, tensors);
            DurableFiles.write(weights.resolveSibling(ModelConfig.FILE), model.toJson());
            DurableFiles.move(partial, weights);
        } catch (IOException e) {
            throw failed(partial, DiskSpace.failure(weights, bytes, e));
        } catch (StoredFileException e) {
            throw failed(partial, e.getCause() == null ? e : DiskSpace.failure(weights, bytes, e));
        }
    }

    /** Removes the partial file, which is useless: on a full disk its space is needed. */
    private static StoredFileException failed(Path partial, StoredFileException failure) {
        try {
            Files.deleteIfExists(partial);
        } catch (IOException e) {
            failure.addSuppressed(e);
        }
        return failure;
    }
}
