package dev.penstock.runtime.checkpoint;

import dev.penstock.actors.fault.SaveFaults;
import dev.penstock.actors.fault.SavePoint;
import dev.penstock.actors.spi.CheckpointStore;
import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.safetensors.SafetensorsWriter;
import dev.penstock.runtime.safetensors.Sha256;
import dev.penstock.runtime.safetensors.StoredFileException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes the checkpoints of a run so that a kill or a full disk at any moment leaves the existing
 * ones as they are. Shards are collected in {@code step-000100.epoch-3.incomplete}, so that ranks
 * of two epochs never meet in one file; the manifest comes last, each file flushed; one rename
 * turns it into {@code step-000100}. Then, on a thread of its own (hashing is slow), the new set is
 * read back, and only if it is whole are the older ones beyond the retained number removed.
 *
 * <p>{@link #writeShard} is called by the shards' threads, in their processes; {@link #publish} by
 * the one supervisor. A shard's hash is taken on another thread while it is written. Failures are
 * {@link StoredFileException}s; the run may continue after one.
 */
public final class CheckpointDirectory implements CheckpointStore, AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(CheckpointDirectory.class);

    private final Path root;
    private final CheckpointIdentity identity;
    private final Retention retention;
    private final SaveFaults faults;
    private volatile VerificationListener listener = (_, _, _) -> {};

    /** Steps whose published set did not read back: none of those that are to be kept. */
    private final Set<Long> damaged = new HashSet<>();

    private final ExecutorService housekeeper =
            Executors.newSingleThreadExecutor(
                    Thread.ofPlatform().name("checkpoint-housekeeper").daemon().factory());

    /**
     * @param root of the checkpoints, created when the first one is written
     * @param retained newest checkpoints to keep, at least 1
     */
    public CheckpointDirectory(Path root, CheckpointIdentity identity, int retained) {
        this(root, identity, Retention.newest(retained), SaveFaults.NONE);
    }

    /** Same as the other, with faults to inject. */
    public CheckpointDirectory(
            Path root, CheckpointIdentity identity, Retention retention, SaveFaults faults) {
        this.root = root;
        this.identity = identity;
        this.retention = retention;
        this.faults = faults;
    }

    /** Notified of every published checkpoint that was read back, on the housekeeper's thread. */
    @FunctionalInterface
    public interface VerificationListener {
        /**
         * A checkpoint was read back.
         *
         * @param problem what is wrong with it; empty if it is whole
         */
        void onVerified(long step, long nanos, String problem);
    }

    /** Sets the listener that is notified of checkpoints that were read back; it must not throw. */
    public void tellOfVerification(VerificationListener toldFromNow) {
        listener = toldFromNow;
    }

    /**
     * Removes what a crash left behind: unfinished and half removed sets, sets that were replaced
     * by a whole one, and what was held for reading. Only to be called while nothing is written,
     * before the run starts.
     */
    public void sweep() {
        HeldCheckpoint.sweep(root);
        CheckpointFolders.restoreReplaced(root);
        for (CheckpointFolders.Folder folder : CheckpointFolders.newestFirst(root)) {
            switch (folder.state()) {
                case CheckpointFolders.INCOMPLETE, CheckpointFolders.REMOVED ->
                        remove(folder.path());
                case CheckpointFolders.REPLACED -> removeIfWhole(folder);
                default -> {}
            }
        }
    }

    private void removeIfWhole(CheckpointFolders.Folder replaced) {
        Path newer = CheckpointFolders.of(root, replaced.step());
        if (Files.exists(newer) && isWhole(newer)) {
            remove(replaced.path());
        }
    }

    @Override
    public ShardFile writeShard(
            long step, int epoch, int stage, RankPlace place, List<NamedTensor> state) {
        Map<String, String> metadata =
                Map.of("format", "pt", "penstock", "step %d, stage %d".formatted(step, stage));
        return writeShard(
                step, epoch, stage, StageFile.name(stage, place), StageFile.of(metadata, state));
    }

    /**
     * Writes a file of a stage.
     *
     * @param name of the file, without an ending
     */
    ShardFile writeShard(long step, int epoch, int stage, String name, StageFile content) {
        Path folder = CheckpointFolders.incomplete(root, step, epoch);
        Path file = folder.resolve(name + ".safetensors");
        long bytes = SafetensorsWriter.bytes(content.metadata(), content.tensors());
        try {
            Files.createDirectories(folder);
            Files.deleteIfExists(file); // left by an earlier attempt at this step
            DiskSpace.require(file, bytes);
            SafetensorsWriter.Written written =
                    SafetensorsWriter.write(
                            file,
                            content.metadata(),
                            content.tensors(),
                            new HarmedShard(faults, step, bytes));
            faults.at(SavePoint.SHARD_FLUSHED, step);
            return new ShardFile(
                    stage, file.getFileName().toString(), written.bytes(), written.sha256());
        } catch (IOException e) {
            throw given(folder, DiskSpace.failure(file, bytes, e));
        } catch (StoredFileException e) {
            boolean written = e.getCause() != null;
            throw given(folder, written ? DiskSpace.failure(file, bytes, e) : e);
        } catch (InternalError e) { // a fault in memory into which a file is mapped
            throw given(folder, new StoredFileException(file, "cannot read its tensors", e));
        }
    }

    /** Removes the whole set, which is useless now: on a full disk its space is needed. */
    private static StoredFileException given(Path folder, StoredFileException failure) {
        remove(folder);
        return failure;
    }

    /** Removes what a rank wrote after another had failed: on a full disk its space is needed. */
    @Override
    public void abandon(long step, int epoch) {
        Path partial = CheckpointFolders.incomplete(root, step, epoch);
        if (Files.exists(partial)) {
            remove(partial);
        }
    }

    @Override
    public OptionalLong newestBefore(long step) {
        return CheckpointFolders.newestBefore(root, step);
    }

    @Override
    public void publish(long step, int epoch, List<ShardFile> shards) {
        publish(step, epoch, shards, "");
    }

    @Override
    public void publish(long step, int epoch, List<ShardFile> shards, String lossScale) {
        Path partial = CheckpointFolders.incomplete(root, step, epoch);
        Path whole = CheckpointFolders.of(root, step);
        try {
            complete(partial, step, shards, lossScale);
            if (Files.exists(whole)) {
                Path replaced = CheckpointFolders.of(root, step, CheckpointFolders.REPLACED);
                DurableFiles.delete(replaced);
                DurableFiles.move(whole, replaced);
                faults.at(SavePoint.OLD_SET_ASIDE, step);
            }
            DurableFiles.move(partial, whole);
            faults.at(SavePoint.RENAMED, step);
        } catch (IOException e) {
            throw given(partial, StoredFileException.of(whole, "publish the checkpoint", e));
        } catch (StoredFileException e) {
            throw given(partial, e);
        }
        housekeeper.execute(() -> keepHouse(step));
    }

    private void complete(Path partial, long step, List<ShardFile> shards, String lossScale)
            throws IOException {
        Set<Path> expected = new HashSet<>();
        for (ShardFile shard : shards) {
            Path file = partial.resolve(shard.file());
            expected.add(file);
            if (!Files.exists(file) || Files.size(file) != shard.bytes()) {
                throw new StoredFileException(
                        file, "missing, or not a file of %d bytes".formatted(shard.bytes()));
            }
        }
        try (Stream<Path> files = Files.list(partial)) {
            for (Path stray : files.filter(file -> !expected.contains(file)).toList()) {
                Files.delete(stray); // left by an earlier attempt with more ranks
            }
        }
        String config = identity.model().toJson();
        DurableFiles.write(partial.resolve(ModelConfig.FILE), config);
        Manifest manifest =
                new Manifest(
                        Manifest.FORMAT_VERSION,
                        step,
                        identity.seed(),
                        identity.configHash(),
                        identity.model(),
                        Sha256.of(config),
                        shards,
                        lossScale);
        DurableFiles.write(partial.resolve(Manifest.FILE), manifest.toJson());
        faults.at(SavePoint.MANIFEST_WRITTEN, step);
    }

    private void keepHouse(long step) {
        long start = System.nanoTime();
        Optional<String> problem = problemOf(CheckpointFolders.of(root, step));
        listener.onVerified(step, System.nanoTime() - start, problem.orElse(""));
        if (problem.isPresent()) {
            LOG.warn("{}: keeping older checkpoints", CheckpointFolders.of(root, step));
            damaged.add(step);
            return;
        }
        damaged.remove(step);
        List<CheckpointFolders.Folder> folders = CheckpointFolders.newestFirst(root);
        Optional<Long> best;
        try {
            best = bestOf(folders);
        } catch (UncheckedIOException e) {
            LOG.warn("keeping older checkpoints, since the best is not known: {}", e.getMessage());
            return;
        }
        int kept = 1;
        for (CheckpointFolders.Folder folder : folders) {
            boolean older = folder.step() < step;
            boolean useless =
                    switch (folder.state()) {
                        case "" ->
                                older
                                        && !damaged.contains(folder.step())
                                        && ++kept > retention.newest()
                                        && !best.equals(Optional.of(folder.step()));
                        case CheckpointFolders.REPLACED -> folder.step() <= step;
                        default -> older;
                    };
            if (useless) {
                remove(folder.path());
            }
        }
    }

    private Optional<Long> bestOf(List<CheckpointFolders.Folder> folders) {
        List<Long> steps =
                folders.stream()
                        .filter(folder -> folder.state().isEmpty())
                        .map(CheckpointFolders.Folder::step)
                        .filter(step -> !damaged.contains(step))
                        .toList();
        return Retention.best(steps, retention.validationLosses().get());
    }

    private static boolean isWhole(Path folder) {
        return problemOf(folder).isEmpty();
    }

    private static Optional<String> problemOf(Path folder) {
        try {
            List<StoredFileException> problems = SavedCheckpoint.open(folder).verify();
            problems.forEach(problem -> LOG.warn("{}", problem.getMessage()));
            return problems.stream().map(each -> String.valueOf(each.getMessage())).findFirst();
        } catch (StoredFileException e) {
            LOG.warn("{}", e.getMessage());
            return Optional.of(String.valueOf(e.getMessage()));
        }
    }

    private static void remove(Path folder) {
        try {
            removeWhole(folder);
        } catch (IOException e) {
            LOG.warn("{}: cannot remove it: {}", folder, e.getMessage());
        }
    }

    /**
     * Renames before it removes, so that a kill in between leaves no partial set under a valid
     * name.
     */
    static void removeWhole(Path folder) throws IOException {
        String name = folder.getFileName().toString();
        String step = name.contains(".") ? name.substring(0, name.indexOf('.')) : name;
        Path removed = folder.resolveSibling(step + CheckpointFolders.REMOVED);
        DurableFiles.delete(removed);
        if (Files.exists(folder)) {
            Files.move(folder, removed);
            DurableFiles.delete(removed);
        }
    }

    /** Waits until the last published checkpoint has been read back and the old ones are gone. */
    @Override
    public void close() {
        housekeeper.close();
    }
}
