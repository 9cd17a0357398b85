package dev.penstock.runtime.weights;

import dev.penstock.runtime.safetensors.SafetensorsFile;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.StoredTensors;
import dev.penstock.runtime.torchfile.TorchFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** Opens the weights of a folder, or of a file, by what they are called. */
public final class WeightsFiles {
    /** The name of a model in one file. */
    public static final String SINGLE = "model.safetensors";

    /** The ending of an index of several files. */
    public static final String INDEX = ".index.json";

    /**
     * The ending of a file that stands beside weights while an export replaces them, and after one
     * that was cut short.
     */
    public static final String UNFINISHED = ".unfinished";

    /** What older repositories have, written by torch. */
    private static final String TORCH = "pytorch_model.bin";

    /** As transformers looks for them: the first that exists is the model. */
    private static final List<String> NAMES = List.of(SINGLE, SINGLE + INDEX, TORCH, TORCH + INDEX);

    private WeightsFiles() {}

    /** Returns whether a folder has weights under one of their usual names, whole or not. */
    public static boolean areIn(Path folder) {
        return NAMES.stream().anyMatch(name -> Files.exists(folder.resolve(name)))
                || Files.exists(folder.resolve(SINGLE + UNFINISHED));
    }

    /**
     * Opens weights; nothing is read but the tables of contents.
     *
     * @param path a safetensors file, a file that torch wrote, an index ({@code
     *     model.safetensors.index.json}), or a folder with one of them under its usual name
     * @throws StoredFileException if it cannot be read, with all that is wrong with an index, or if
     *     an export that replaced it was cut short
     */
    public static StoredTensors open(Path path) {
        requireFinished(Files.isDirectory(path) ? path.resolve(SINGLE) : path);
        Path file = Files.isDirectory(path) ? in(path) : path;
        return file.toString().endsWith(INDEX)
                ? ShardedWeights.open(file, WeightsFiles::openOne)
                : openOne(file);
    }

    private static void requireFinished(Path file) {
        String name = String.valueOf(file.getFileName());
        String weights =
                name.endsWith(INDEX) ? name.substring(0, name.length() - INDEX.length()) : name;
        Path mark = file.resolveSibling(weights + UNFINISHED);
        if (Files.exists(mark)) {
            throw new StoredFileException(
                    mark,
                    "an export was cut short while it replaced the files beside, which may be of two"
                            + " models; run the same penstock checkpoint export again with --force");
        }
    }

    private static Path in(Path folder) {
        return NAMES.stream()
                .map(folder::resolve)
                .filter(Files::exists)
                .findFirst()
                .orElseThrow(
                        () ->
                                new StoredFileException(
                                        folder,
                                        "no weights here; expected " + String.join(" or ", NAMES)));
    }

    private static StoredTensors openOne(Path file) {
        if (Files.exists(file) && !Files.isRegularFile(file)) {
            throw new StoredFileException(file, "expected a file, got something else");
        }
        return TorchFile.isOne(file) ? TorchFile.open(file) : SafetensorsFile.open(file);
    }
}
