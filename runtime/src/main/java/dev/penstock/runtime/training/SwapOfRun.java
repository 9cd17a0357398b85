package dev.penstock.runtime.training;

import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.shape.SwapCommit;
import dev.penstock.runtime.model.shape.TrainedParts;
import dev.penstock.runtime.model.stage.SwappedRun;
import dev.penstock.runtime.safetensors.StoredFileException;
import java.io.IOException;
import java.util.Optional;
import java.util.function.Consumer;

/** The folder in which a run swaps, which may be further than the run's newest checkpoint. */
final class SwapOfRun {
    private final SwappedRun swapped;

    private SwapOfRun(SwappedRun swapped) {
        this.swapped = swapped;
    }

    /** Empty where nothing is swapped. */
    static Optional<SwapOfRun> of(RunConfig config, RunDirectory directory) {
        return config.device()
                .swap()
                .map(
                        root ->
                                new SwapOfRun(
                                        new SwappedRun(
                                                root,
                                                config.parallel().data(),
                                                config.stages(),
                                                identity(config, directory))));
    }

    /** A run, and what decides which values its files hold and where. */
    private static String identity(RunConfig config, RunDirectory directory) {
        ModelConfig model = config.model().config(config.data().tokenizer().vocabulary());
        var tuning = config.fineTune().tuning(model.family(), model.shape());
        var parts = new TrainedParts(model.shape(), tuning);
        return "%s%n%s%n%s%n%s, seed %d%n%s"
                .formatted(
                        directory.path().toAbsolutePath().normalize(),
                        model.shape(),
                        config.partition(parts, config.stages()).layersPerStage(),
                        config.device().precision(),
                        config.run().seed(),
                        config.parallel().outer());
    }

    /**
     * The update from which the run can go on.
     *
     * @param checkpoint step of the newest checkpoint: one of the same step would have to be read
     *     and written once more
     * @param notes told what it goes on from, or why not
     */
    Optional<SwapCommit> committed(long checkpoint, Consumer<String> notes) {
        Optional<SwapCommit> found =
                swapped.committed(notes).filter(update -> update.step() >= checkpoint);
        found.ifPresent(
                update ->
                        notes.accept(
                                "going on after step %d, which device.swap has: nothing is done again"
                                        .formatted(update.step())));
        return found;
    }

    /** Takes the folder for the run. */
    void begin() throws IOException {
        swapped.begin();
    }

    /**
     * Removes the files if the newest checkpoint is that of the run's last step: it has all of it.
     * Of a run that ended before, they stay for {@code --resume}.
     *
     * @param notes told what was removed, or why not
     */
    void end(RunDirectory directory, long lastStep, Consumer<String> notes) {
        try {
            Optional<SavedCheckpoint> newest =
                    CheckpointFolders.newestOf(directory.path(), _ -> {});
            if (newest.isPresent() && newest.get().step() == lastStep) {
                swapped.remove();
                notes.accept(
                        "device.swap: removed the files in %s: %s has all of them"
                                .formatted(swapped.root(), newest.get().path()));
            }
        } catch (IOException | StoredFileException e) {
            notes.accept(
                    "device.swap: the files in %s are left: %s; delete them when the run has ended"
                            .formatted(swapped.root(), e.getMessage()));
        }
    }
}
