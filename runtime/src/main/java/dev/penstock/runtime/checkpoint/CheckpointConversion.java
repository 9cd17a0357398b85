package dev.penstock.runtime.checkpoint;

import dev.penstock.actors.spi.CheckpointStore.ShardFile;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.StoredType;
import dev.penstock.runtime.safetensors.TensorSource;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.ToIntFunction;

/**
 * Writes the tensors of a checkpoint, or of a model's weights, as a new checkpoint of whole tensors
 * in one file per stage. Without moments the optimizer starts afresh: they are zero, and in no
 * file.
 */
public final class CheckpointConversion {
    private final ModelTensors source;
    private final CheckpointIdentity identity;
    private final long step;

    /**
     * @param identity for the manifest
     * @param step number of steps that the state has seen
     */
    public CheckpointConversion(ModelTensors source, CheckpointIdentity identity, long step) {
        this.source = source;
        this.identity = identity;
        this.step = step;
    }

    /**
     * Writes the checkpoint and reads it back.
     *
     * @param run folder of the run that may continue from there; its checkpoint of this step does
     *     not exist yet
     * @param stageOf maps a parameter to its stage, from 0 to {@code stages - 1}
     * @throws StoredFileException if it exists, or cannot be written; nothing is left then
     */
    public SavedCheckpoint write(Path run, int stages, ToIntFunction<String> stageOf) {
        Path root = run.resolve(CheckpointFolders.FOLDER);
        Path folder = CheckpointFolders.of(root, step);
        if (Files.exists(folder)) {
            throw new StoredFileException(
                    folder, "this checkpoint exists already; try another folder");
        }
        boolean made = makeFolder(root);
        AtomicReference<String> found = new AtomicReference<>("");
        try (var directory = new CheckpointDirectory(root, identity, Integer.MAX_VALUE)) {
            // it is read back once, which takes as long as to write it
            directory.tellOfVerification((_, _, problem) -> found.set(problem));
            List<ShardFile> files = new ArrayList<>();
            for (int stage = 0; stage < stages; stage++) {
                writeStage(directory, stage, stageOf).ifPresent(files::add);
            }
            requireWholeSource(directory);
            directory.publish(step, 1, files);
        } catch (StoredFileException e) {
            removeIfEmpty(made, root, run);
            source.requireWhole(); // all else may follow from it
            throw e;
        }
        if (!found.get().isEmpty()) {
            throw new StoredFileException(folder, found.get());
        }
        return SavedCheckpoint.open(folder);
    }

    private void requireWholeSource(CheckpointDirectory directory) {
        try {
            source.requireWhole();
        } catch (StoredFileException e) {
            directory.abandon(step, 1);
            throw e;
        }
    }

    private Optional<ShardFile> writeStage(
            CheckpointDirectory directory, int stage, ToIntFunction<String> stageOf) {
        List<TensorSource> tensors = new ArrayList<>();
        identity.model()
                .parameters()
                .forEach(
                        (name, _) -> {
                            if (stageOf.applyAsInt(name) == stage) {
                                tensors.add(tensor(name).orElseThrow());
                                tensor(ModelFit.FIRST_MOMENT + name).ifPresent(tensors::add);
                                tensor(ModelFit.SECOND_MOMENT + name).ifPresent(tensors::add);
                            }
                        });
        Map<String, String> metadata =
                Map.of("format", "pt", "penstock", "step %d, stage %d".formatted(step, stage));
        return tensors.isEmpty()
                ? Optional.empty()
                : Optional.of(
                        directory.writeShard(
                                step,
                                1,
                                stage,
                                StageFile.name(stage, RankPlace.single(stage)),
                                new StageFile(metadata, tensors)));
    }

    /** Returns a tensor as F32, the type in which runs keep their state; read as it is written. */
    private Optional<TensorSource> tensor(String name) {
        return source.source(name).map(found -> found.named(name).as(StoredType.F32));
    }

    private static boolean makeFolder(Path root) {
        boolean there = Files.exists(root);
        try {
            Files.createDirectories(root);
        } catch (IOException e) {
            throw StoredFileException.of(root, "create the folder", e);
        }
        return !there;
    }

    private static void removeIfEmpty(boolean made, Path... folders) {
        for (Path folder : folders) {
            try {
                if (made) {
                    Files.deleteIfExists(folder);
                }
            } catch (IOException e) {
                return; // something else has been put there
            }
        }
    }
}
