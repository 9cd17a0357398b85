package dev.penstock.runtime.training;

import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.checkpoint.DurableFiles;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.FileCause;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.run.DataSection;
import dev.penstock.runtime.config.run.DraftConfig;
import dev.penstock.runtime.config.run.ExposedDataPlane;
import dev.penstock.runtime.config.run.LayoutChanges;
import dev.penstock.runtime.config.run.PipelineSection;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.config.run.RunSection;
import dev.penstock.runtime.data.DataException;
import dev.penstock.runtime.data.DataProblem;
import dev.penstock.runtime.data.GivenTokens;
import dev.penstock.runtime.inference.TrainingTasks;
import dev.penstock.runtime.launch.EarlierStarts;
import dev.penstock.runtime.launch.RunAssembly;
import dev.penstock.runtime.launch.RunOptions;
import dev.penstock.runtime.launch.RunOptions.DumpRequest;
import dev.penstock.runtime.launch.RunParts;
import dev.penstock.runtime.launch.RunStart;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.metrics.RunDirectoryException;
import dev.penstock.runtime.metrics.RunLock;
import dev.penstock.runtime.model.shape.SwapCommit;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.Consumer;

/**
 * From what was asked for to a run in its directory: a new one, which gets its directory only when
 * nothing is wrong, or one that continues in the directory of an earlier one.
 */
public final class TrainingStart {
    /**
     * What was asked for.
     *
     * @param runDirectory empty for a new one, or the newest of the run's name, below run.directory
     * @param init weights to start from
     * @param tokens of the program that asks; empty where files have them
     */
    public record Request(
            DraftConfig draft,
            Optional<Path> runDirectory,
            boolean resume,
            Optional<Path> init,
            Optional<DumpRequest> dump,
            Optional<GivenTokens> tokens) {}

    /**
     * Trains a run that is ready.
     *
     * @param <T> what it gives
     */
    public interface Trainer<T> {
        /** The directory is the run's own from now on; nothing is in it yet if the run is new. */
        default void onBegin(RunDirectory directory) {}

        /**
         * Another process took the directory over while this one stood still: whatever this one
         * still writes is among the other's files. On a thread of its own.
         */
        void onLost(RunDirectory directory);

        /**
         * Trains.
         *
         * @param assembly closed afterwards
         */
        T train(RunDirectory directory, RunAssembly assembly);
    }

    private final Request request;
    private final RunSection section;
    private final List<Problem> problems;
    private final Consumer<String> notes;

    /**
     * @param problems found so far, told with those that are found here
     * @param notes receives what to know of a run that continues
     */
    public TrainingStart(Request request, List<Problem> problems, Consumer<String> notes) {
        this.request = request;
        this.section = request.draft().draft().config().run();
        this.problems = new ArrayList<>(problems);
        this.notes = notes;
        ExposedDataPlane.ofLocalRun(request.draft().draft()).ifPresent(this.problems::add);
        addProblemsOfTasks();
    }

    /** Their files are read once more when they are measured; they are small. */
    private void addProblemsOfTasks() {
        DraftConfig draft = request.draft();
        RunConfig config = draft.draft().config();
        if (!draft.sound("evaluation", "model.context", "data.tokenizer")
                || config.evaluation().tasks().isEmpty()) {
            return;
        }
        try {
            TrainingTasks.prepare(
                    config.evaluation().tasks(),
                    Tokenizer.open(config.data().tokenizer().word()),
                    config.model().context());
        } catch (DataException e) {
            for (DataProblem problem : e.problems()) {
                problems.add(
                        draft.draft()
                                .problem(
                                        "evaluation.tasks",
                                        problem.expected(),
                                        "%s: %s".formatted(problem.key(), problem.got()),
                                        problem.advice()));
            }
        }
    }

    /**
     * Trains; returns what the trainer gives.
     *
     * @throws ConfigException with everything that is wrong
     * @throws RunFailedException if the run's files cannot be written
     */
    public <T> T call(Trainer<T> trainer) {
        return request.resume() ? goOn(trainer) : begin(trainer);
    }

    private <T> T begin(Trainer<T> trainer) {
        requireFreePlace();
        RunStart start = start(Optional.empty(), request.init());
        RunParts parts = RunParts.prepareHere(request.draft(), start, problems);
        RunDirectory directory =
                request.runDirectory()
                        .map(RunDirectory::create)
                        .orElseGet(
                                () ->
                                        RunDirectory.createUnder(
                                                section.directory(), section.name()));
        try (RunLock lock = directory.lock()) {
            lock.onLost(() -> trainer.onLost(directory));
            return train(trainer, directory, parts, start);
        }
    }

    private void requireFreePlace() {
        RunDirectory place = new RunDirectory(request.runDirectory().orElseGet(section::directory));
        if (request.runDirectory().isPresent()) {
            if (place.holdsRun()) {
                problem(
                        "--run-dir",
                        "an empty directory",
                        place.path() + ", which already holds a run",
                        "try --resume to go on with it, or another --run-dir");
            } else {
                place.whyNotWritable()
                        .ifPresent(
                                why ->
                                        problem(
                                                "--run-dir",
                                                "a place to write to",
                                                "%s (%s)".formatted(place.path(), why),
                                                "try another"));
            }
        } else if (request.draft().sound("run.directory")) {
            place.whyNotWritable()
                    .ifPresent(
                            why ->
                                    problems.add(
                                            request.draft()
                                                    .draft()
                                                    .problem(
                                                            "run.directory",
                                                            "a place to write to",
                                                            "%s (%s)".formatted(place.path(), why),
                                                            "try --run-dir with another")));
        }
    }

    private <T> T goOn(Trainer<T> trainer) {
        RunDirectory directory = earlierRun().orElseThrow(this::refusal);
        try (RunLock lock = lock(directory)) {
            lock.onLost(() -> trainer.onLost(directory));
            requireGivenTokens(directory);
            RunStart start = startIn(directory);
            requireSameTokens(directory);
            RunParts parts = RunParts.prepareHere(request.draft(), start, problems);
            return train(trainer, directory, parts, start);
        }
    }

    private Optional<RunDirectory> earlierRun() {
        if (request.runDirectory().isPresent()) {
            RunDirectory named = new RunDirectory(request.runDirectory().get());
            if (named.wasPrepared()) {
                return Optional.of(named);
            }
            problem(
                    "--run-dir",
                    "the directory of a run to go on with",
                    named.path() + ", where none was started",
                    "try the directory that the run printed");
            return Optional.empty();
        }
        if (!request.draft().sound("run.directory", "run.name")) {
            return Optional.empty();
        }
        Optional<RunDirectory> latest =
                RunDirectory.latestUnder(section.directory(), section.name());
        if (latest.isEmpty()) {
            problem(
                    "--resume",
                    "a run named %s below %s".formatted(section.name(), section.directory()),
                    "none",
                    "name its directory with --run-dir");
        }
        return latest;
    }

    private RunLock lock(RunDirectory directory) {
        try {
            return directory.lock();
        } catch (RunDirectoryException e) {
            problem("--resume", "", String.valueOf(e.getMessage()), "");
            throw refusal();
        }
    }

    private ConfigException refusal() {
        return RunParts.refusal(request.draft(), start(Optional.empty(), request.init()), problems);
    }

    /** From the newest checkpoint; as the run itself began if it ended before it had saved one. */
    private RunStart startIn(RunDirectory directory) {
        try {
            Optional<SavedCheckpoint> found = CheckpointFolders.newestOf(directory.path(), notes);
            Optional<Path> newest = found.map(SavedCheckpoint::path);
            tellOfEarlierStarts(directory, found);
            tellOfOtherLayout(directory, found.map(SavedCheckpoint::step).orElse(0L));
            Optional<SwapCommit> swapped =
                    swappedIn(directory, found.map(SavedCheckpoint::step).orElse(0L));
            if (swapped.isPresent()) {
                return start(newest, Optional.empty()).after(swapped.get());
            }
            if (newest.isEmpty()) {
                Optional<Path> init = RunOptions.initOf(directory.path());
                notes.accept(
                        "%s has no checkpoint yet: starting from the beginning%s"
                                .formatted(
                                        directory.path(),
                                        init.map(file -> ", with the weights of " + file)
                                                .orElse("")));
                return start(newest, init);
            }
            return start(newest, Optional.empty());
        } catch (StoredFileException e) {
            problem("--resume", "a checkpoint to go on from", "" + e.getMessage(), "");
            return start(Optional.empty(), Optional.empty());
        }
    }

    /** Where anything is wrong nothing starts, and there is no saying what the folder holds. */
    private Optional<SwapCommit> swappedIn(RunDirectory directory, long checkpoint) {
        return request.draft().problems().isEmpty()
                ? SwapOfRun.of(request.draft().draft().config(), directory)
                        .flatMap(swap -> swap.committed(checkpoint, notes))
                : Optional.empty();
    }

    private void tellOfEarlierStarts(RunDirectory directory, Optional<SavedCheckpoint> newest) {
        EarlierStarts starts = EarlierStarts.in(directory.path());
        starts.tell(
                newest.map(saved -> OptionalLong.of(saved.step())).orElse(OptionalLong.empty()),
                notes);
        var processes = request.draft().draft().config().pipeline().processes();
        if (processes == PipelineSection.Processes.PER_STAGE) { // others have no journal
            starts.tellIfAbsent(notes);
        }
    }

    /** The layout may be another, the meaning of the tokens may not. */
    private void tellOfOtherLayout(RunDirectory directory, long step) {
        Path earlier = directory.resolvedConfiguration();
        if (!Files.exists(earlier) || !request.draft().problems().isEmpty()) {
            return; // nothing starts, and what is broken cannot be compared
        }
        RunConfig now = RunParts.decided(request.draft().draft()).config();
        try {
            var changes = LayoutChanges.since(earlier, now.resolved());
            List<String> layout = changes.layout();
            if (!layout.isEmpty()) {
                notes.accept("resuming with a different layout: " + String.join(", ", layout));
            }
            changes.dataOrder(step).ifPresent(notes);
            changes.context().ifPresent(notes);
            if (request.draft().sound("data.tokenizer")) {
                requireSameTokenizer(directory, changes);
            }
        } catch (IOException e) {
            notes.accept(
                    "%s: %s; whether the layout or the tokenizer was another one is not known"
                            .formatted(earlier, FileCause.of(e)));
        }
    }

    private void requireSameTokenizer(RunDirectory directory, LayoutChanges changes) {
        String word = request.draft().draft().config().data().tokenizer().word();
        TokenizerOfRun.in(directory, changes.tokenizerBefore())
                .filter(earlier -> !earlier.isSameAs(word))
                .ifPresent(
                        earlier ->
                                problems.add(
                                        request.draft()
                                                .draft()
                                                .problem(
                                                        "data.tokenizer",
                                                        "that of the run to go on with, "
                                                                + earlier.word(),
                                                        earlier.word().equals(word)
                                                                ? word
                                                                        + ", whose files have"
                                                                        + " changed"
                                                                : word,
                                                        "set it back, or start a new run without"
                                                                + " --resume; if nothing was"
                                                                + " changed, %s is damaged: delete it"
                                                                        .formatted(
                                                                                directory
                                                                                        .tokenizer()))));
    }

    /** Without its tokens nothing else about such a run can be checked. */
    private void requireGivenTokens(RunDirectory directory) {
        Optional<String> before = GivenTokensOfRun.in(directory);
        DataSection.Format format = request.draft().draft().config().data().format();
        if (before.isPresent()
                && request.tokens().isEmpty()
                && format != DataSection.Format.GIVEN) { // which is told of where data is opened
            problem(
                    GivenTokens.METHOD,
                    "the tokens of the run to go on with, " + before.get(),
                    "none",
                    "give them, or start a new run");
            throw new ConfigException(problems);
        }
    }

    /** Tokens that a program gives are known by a name alone. */
    private void requireSameTokens(RunDirectory directory) {
        Optional<String> before = GivenTokensOfRun.in(directory);
        Optional<String> now = request.tokens().map(GivenTokens::identity);
        if (before.isPresent() && now.isPresent() && !before.equals(now)) {
            problem(
                    GivenTokens.METHOD,
                    "the tokens of the run to go on with, " + before.get(),
                    now.get(),
                    "give the same tokens, or start a new run");
        }
    }

    private RunStart start(Optional<Path> checkpoint, Optional<Path> init) {
        return new RunStart(
                checkpoint,
                init.map(Path::toAbsolutePath),
                request.dump(),
                false,
                request.tokens());
    }

    private <T> T train(
            Trainer<T> trainer, RunDirectory directory, RunParts parts, RunStart start) {
        trainer.onBegin(directory);
        RunOptions options = start.in(directory.path(), section.name());
        Optional<SwapOfRun> swap = SwapOfRun.of(parts.config(), directory);
        T trained;
        try (RunAssembly assembly = new RunAssembly(parts, options)) {
            Files.createDirectories(directory.checkpoints());
            DurableFiles.write(directory.resolvedConfiguration(), parts.config().resolved());
            TokenizerOfRun.write(directory, assembly.tokenizer());
            if (request.tokens().isPresent()) {
                GivenTokensOfRun.write(directory, request.tokens().get());
            }
            options.write();
            if (swap.isPresent() && start.swapped().isEmpty()) {
                swap.get().begin();
            }
            trained = trainer.train(directory, assembly);
        } catch (IOException e) {
            throw new RunFailedException(
                    "cannot write into %s: %s; make room, or give it back its permissions, and try again"
                            .formatted(directory.path(), FileCause.of(e)));
        }
        swap.ifPresent(files -> files.end(directory, parts.config().run().steps(), notes));
        return trained;
    }

    private void problem(String option, String expected, String got, String advice) {
        problems.add(Problem.atOption(option, expected, got, advice));
    }
}
