package dev.penstock.runtime.checkpoint;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Writes a model as transformers reads it: one safetensors file (which it looks for under the name
 * {@code model.safetensors}) and {@code config.json} beside it.
 */
public final class HuggingFaceExport {
    private HuggingFaceExport() {}

    /**
     * Exports the parameters of a model; optimizer state is left out. The names are those of the
     * published gpt2 files ({@code wte.weight}, ...); a model with a head of its own gets the
     * {@code transformer.} prefix, since transformers refuses a {@code lm_head.weight} beside bare
     * names.
     *
     * @param weights the file to write; its folder is made if it does not exist; files of the same
     *     names are replaced
     * @throws CheckpointException if the tensors are not those of the model or cannot be written
     */
    public static void write(Path weights, Gpt2Config model, ModelTensors source) {
        source.requireParameters(model);
        try (Arena arena = Arena.ofShared()) {
            write(weights, model, tensors(model, source, arena));
        }
    }

    private static List<StoredTensor> tensors(Gpt2Config model, ModelTensors source, Arena arena) {
        List<StoredTensor> tensors = new ArrayList<>();
        for (String name : model.parameters().keySet()) {
            StoredTensor tensor = source.read(name, arena).orElseThrow();
            boolean bare = model.tied() || name.startsWith("lm_head.");
            String published = bare ? name : HuggingFaceWeights.PREFIX + name;
            tensors.add(new StoredTensor(published, tensor.type(), tensor.shape(), tensor.data()));
        }
        return tensors;
    }

    private static void write(Path weights, Gpt2Config model, List<StoredTensor> tensors) {
        Path partial = weights.resolveSibling(weights.getFileName() + ".incomplete");
        try {
            Files.createDirectories(DurableFiles.folderOf(weights));
            Files.deleteIfExists(partial);
            SafetensorsWriter.write(partial, Map.of("format", "pt"), tensors);
            DurableFiles.write(weights.resolveSibling(Gpt2Config.FILE), model.toJson());
            DurableFiles.move(partial, weights);
        } catch (IOException e) {
            throw CheckpointException.of(weights, "export the model", e);
        }
    }
}
