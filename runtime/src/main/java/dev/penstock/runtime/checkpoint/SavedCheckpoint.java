package dev.penstock.runtime.checkpoint;

import dev.penstock.actors.spi.CheckpointStore.ShardFile;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.safetensors.Sha256;
import dev.penstock.runtime.safetensors.StoredFileException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;

/** A checkpoint on disk whose manifest could be read; {@link #verify} checks its shards. */
public record SavedCheckpoint(Path path, Manifest manifest) {
    /**
     * Reads the manifest of a checkpoint.
     *
     * @throws StoredFileException if there is none or it is damaged
     */
    public static SavedCheckpoint open(Path path) {
        if (!Files.isDirectory(path)) {
            throw new StoredFileException(
                    path,
                    "not the folder of a checkpoint; expected one such as checkpoints/step-000100");
        }
        return new SavedCheckpoint(path, Manifest.read(path));
    }

    /** Returns the number of training steps that the state has seen. */
    public long step() {
        return manifest.step();
    }

    /**
     * Reads every file in full and compares its hash with the manifest; then checks that the files
     * hold every tensor of the model, each of its elements once.
     *
     * @return the problems, each naming its file; empty if all is well
     */
    public List<StoredFileException> verify() {
        List<StoredFileException> problems = new ArrayList<>();
        for (ShardFile shard : manifest.shards()) {
            check(shard.file(), shard.bytes(), shard.sha256()).ifPresent(problems::add);
        }
        check(ModelConfig.FILE, -1, manifest.configSha256()).ifPresent(problems::add);
        if (problems.isEmpty()) {
            try (CheckpointReader reader = read()) {
                reader.requireState(manifest.model());
            } catch (StoredFileException e) {
                problems.add(e);
            }
        }
        return problems;
    }

    /** Whether all files that the manifest names are there, of the right size. */
    boolean hasAllFiles() {
        try {
            for (ShardFile shard : manifest.shards()) {
                Path file = path.resolve(shard.file());
                if (!Files.exists(file) || Files.size(file) != shard.bytes()) {
                    return false;
                }
            }
            return true;
        } catch (IOException e) {
            throw StoredFileException.of(path, "look at the checkpoint", e);
        }
    }

    private Optional<StoredFileException> check(String name, long bytes, String sha256) {
        Path file = path.resolve(name);
        try {
            long size = Files.size(file);
            if (bytes >= 0 && size != bytes) {
                return Optional.of(
                        new StoredFileException(
                                file, "expected %d bytes, got %d".formatted(bytes, size)));
            }
            String hash = Sha256.ofFile(file);
            return hash.equals(sha256)
                    ? Optional.empty()
                    : Optional.of(
                            new StoredFileException(
                                    file,
                                    "damaged: expected SHA-256 %s, got %s"
                                            .formatted(sha256, hash)));
        } catch (IOException e) {
            return Optional.of(StoredFileException.of(file, "read the file", e));
        } catch (StoredFileException e) {
            return Optional.of(e);
        }
    }

    /**
     * Opens the tensors of all shards; the first that is copied from a shard has all of it read and
     * compared with its hash, which fails as {@link #verify} says.
     *
     * @throws StoredFileException as {@link #read}
     */
    public CheckpointReader readVerified() {
        Map<Path, ShardFile> shards = new HashMap<>();
        manifest.shards().forEach(shard -> shards.put(path.resolve(shard.file()), shard));
        return read().checking(
                        file -> {
                            ShardFile shard = Objects.requireNonNull(shards.get(file));
                            check(shard.file(), shard.bytes(), shard.sha256())
                                    .ifPresent(
                                            problem -> {
                                                throw problem;
                                            });
                        });
    }

    /**
     * Opens the tensors of all shards without checking hashes. Before the first step moments that
     * are in no file are zero.
     *
     * @throws StoredFileException if a shard is missing or malformed, or if they do not make whole
     *     tensors
     */
    public CheckpointReader read() {
        CheckpointReader reader =
                CheckpointReader.open(
                        path,
                        manifest.shards().stream()
                                .map(shard -> path.resolve(shard.file()))
                                .toList());
        return step() == 0 ? reader.atBeginning() : reader;
    }

    /** Opens the model as those use it who do not train it: with its adapters merged. */
    public ModelTensors readMerged() {
        return MergedTensors.of(read(), manifest.model());
    }
}
