package dev.penstock;

import static java.util.Objects.requireNonNull;

import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.DataSection;
import dev.penstock.runtime.config.run.DraftConfig;
import dev.penstock.runtime.launch.RunParts;
import dev.penstock.runtime.launch.RunStart;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.training.GivenTokensOfRun;
import dev.penstock.runtime.training.HeldOutLoss;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A training, described: the configuration of the command line, given by a file, a text or code.
 *
 * {@snippet file="dev/penstock/examples/TrainExample.java" region="example"}
 *
 * <p>Immutable: each method returns another description, which can be used again and shared.
 * Nothing is read or started before {@link #train}, {@link #resume}, {@link #start} or {@link
 * #check}. All keys are in {@code docs/configuration.md}; two defaults differ from the command
 * line's: {@code report.dashboard} and {@code report.sample} are off unless the configuration turns
 * them on.
 *
 * <p>Whatever goes wrong is a {@link PenstockException} with all problems. Nothing here ends the
 * JVM, takes over signals or writes to the terminal; warnings go to SLF4J. A null argument is a
 * {@link NullPointerException} that names it. A training has its own threads, shared memory and
 * directory, so several can run in one process.
 */
public final class Penstock {
    private final Settings settings;
    private final @Nullable TokenSource tokens;
    private final @Nullable Path weights;
    private final @Nullable Path directory;

    private Penstock(
            Settings settings,
            @Nullable TokenSource tokens,
            @Nullable Path weights,
            @Nullable Path directory) {
        this.settings = settings;
        this.tokens = tokens;
        this.weights = weights;
        this.directory = directory;
    }

    /**
     * A training that a configuration file describes.
     *
     * @param file HOCON; relative paths in it lead to its folder first
     */
    public static Penstock ofFile(Path file) {
        return new Penstock(
                new Settings(requireNonNull(file, "file"), null, List.of()), null, null, null);
    }

    /**
     * A training that a text describes.
     *
     * @param hocon the text of a configuration file; relative paths in it lead to the working
     *     directory
     */
    public static Penstock ofText(String hocon) {
        return new Penstock(
                new Settings(null, requireNonNull(hocon, "hocon"), List.of()), null, null, null);
    }

    /**
     * A training that keys and values describe.
     *
     * @param keys as for {@link #with}
     */
    public static Penstock of(Map<String, ?> keys) {
        requireNonNull(keys, "keys");
        Penstock described = ofText("");
        for (Map.Entry<String, ?> each : keys.entrySet()) {
            described = described.with(each.getKey(), each.getValue());
        }
        return described;
    }

    /**
     * The same with another value of a key; later values win over earlier ones and over the file.
     *
     * @param key such as {@code model.width}
     * @param value a number, a boolean, a path, a duration, a list or a map; a string is read as it
     *     would be in a file, so {@code "8 MiB"} is a size
     * @throws IllegalArgumentException for a value of another type
     */
    public Penstock with(String key, Object value) {
        return new Penstock(
                settings.with(requireNonNull(key, "key"), requireNonNull(value, "value")),
                tokens,
                weights,
                directory);
    }

    /** The same on these tokens instead of files: leave {@code data.source} out. */
    public Penstock withTokens(TokenSource source) {
        return new Penstock(settings, requireNonNull(source, "source"), weights, directory);
    }

    /**
     * The same from given weights, with a fresh optimizer.
     *
     * @param start a file or folder in Hugging Face's format, or a checkpoint; a {@code
     *     config.json} with it says the model's shape where the configuration says none
     */
    public Penstock startingWith(Path start) {
        return new Penstock(settings, tokens, requireNonNull(start, "start"), directory);
    }

    /**
     * The same with the run's files in this directory, instead of a new one below {@code
     * run.directory}.
     */
    public Penstock in(Path runDirectory) {
        return new Penstock(
                settings, tokens, weights, requireNonNull(runDirectory, "runDirectory"));
    }

    /**
     * Checks configuration, data, order, weights and memory as a new training does, and starts
     * nothing.
     *
     * @throws PenstockException with everything that is wrong
     */
    public void check() {
        JavaOptions.require();
        var _ =
                Failures.telling(
                        () -> {
                            TrainingCall call = call(false);
                            RunStart start = call.start();
                            RunParts.prepareHere(call.draft(), start, call.problems())
                                    .start()
                                    .close();
                            return true;
                        });
    }

    /**
     * Trains a new run on the caller's thread, and returns when all steps are done or it was
     * stopped. An interrupt of the thread stops it, as {@link Training#stop} does.
     *
     * @throws PenstockException if something is wrong, and then nothing was started; or if the
     *     training failed
     */
    public TrainingEnd train(TrainingListener... listeners) {
        return run(new Training(), false, all(listeners));
    }

    /**
     * Continues the run in {@link #in}, or the newest of its name, bit for bit: from its newest
     * whole checkpoint, or from its beginning if it has none. Otherwise as {@link #train}.
     *
     * @throws PenstockException also if there is no such run, or it was trained on other tokens
     */
    public TrainingEnd resume(TrainingListener... listeners) {
        return run(new Training(), true, all(listeners));
    }

    /** Trains a new run on a thread of its own; what {@link #train} throws, its end throws. */
    public Training start(TrainingListener... listeners) {
        return begin(false, all(listeners));
    }

    /** Continues a run on a thread of its own; what {@link #resume} throws, its end throws. */
    public Training startResumed(TrainingListener... listeners) {
        return begin(true, all(listeners));
    }

    private static List<TrainingListener> all(TrainingListener... listeners) {
        for (TrainingListener each : requireNonNull(listeners, "listeners")) {
            requireNonNull(each, "listener");
        }
        return List.of(listeners);
    }

    private Training begin(boolean resumes, List<TrainingListener> listeners) {
        var training = new Training();
        Thread.ofPlatform()
                .name("penstock-training")
                .uncaughtExceptionHandler((_, _) -> {}) // whoever waits for the end gets it
                .start(() -> run(training, resumes, listeners));
        return training;
    }

    private TrainingEnd run(Training training, boolean resumes, List<TrainingListener> listeners) {
        var told = new ToldListeners(listeners, training);
        return training.run(
                _ -> {
                    try {
                        JavaOptions.require();
                        return Failures.telling(() -> call(resumes).train(training, told));
                    } catch (PenstockException e) {
                        told.awaitTold();
                        throw e;
                    }
                },
                told::onEnd);
    }

    private TrainingCall call(boolean resumes) {
        return new TrainingCall(
                settings,
                Optional.ofNullable(tokens),
                Optional.ofNullable(weights),
                Optional.ofNullable(directory),
                resumes);
    }

    /**
     * Measures the loss of a run's newest checkpoint on what the run held out, in the run's own
     * pipeline.
     *
     * @param run its directory
     * @throws PenstockException if that cannot be measured; of a run on tokens of a program, which
     *     have to be given
     */
    public static HeldOut evaluate(Path run) {
        return evaluate(run, Optional.empty());
    }

    /**
     * Measures the loss of a run's newest checkpoint on the part of a program's tokens that a run
     * on them would hold out. They may be others than those that the run was trained on, which
     * {@link HeldOut#measuredOn} says, as long as the model knows each of them.
     *
     * @throws PenstockException if that cannot be measured, as of tokens from {@code
     *     model.vocabulary} on
     */
    public static HeldOut evaluate(Path run, TokenSource source) {
        return evaluate(run, Optional.of(requireNonNull(source, "source")));
    }

    private static HeldOut evaluate(Path run, Optional<TokenSource> source) {
        requireNonNull(run, "run");
        JavaOptions.require();
        return Failures.telling(
                () -> {
                    RunDirectory folder = RunDirectory.open(run);
                    DraftConfig draft =
                            ConfigLoader.draftOfRun(
                                    folder.resolvedConfiguration(),
                                    source.isPresent() ? OwnTokens.ALONE : List.of());
                    DataSection data = draft.draft().config().data();
                    if (source.isEmpty() && data.format() == DataSection.Format.GIVEN) {
                        throw new BadInputException(
                                "evaluate(run, source): expected the tokens of a program (%s), as data.format = given in %s says, got none"
                                        .formatted(
                                                GivenTokensOfRun.in(folder).orElse("of no name"),
                                                folder.resolvedConfiguration()));
                    }
                    HeldOutLoss.Answer answer =
                            HeldOutLoss.measure(
                                            draft,
                                            Optional.of(CheckpointFolders.find(run, _ -> {})),
                                            source.map(OwnTokens::of),
                                            new ArrayList<>(),
                                            _ -> {})
                                    .orElseThrow();
                    return new HeldOut(
                            answer.step(),
                            answer.tokens(),
                            answer.loss(),
                            answer.perplexity(),
                            source.map(each -> OwnTokens.of(each).identity())
                                    .orElseGet(() -> data.source().toString()));
                });
    }

    /**
     * Opens a trained model on the devices of this machine.
     *
     * @param place a run's directory (its newest whole checkpoint), a checkpoint, or weights in
     *     Hugging Face's format (a file or folder with {@code config.json})
     * @throws PenstockException if there is no such model, or it is not whole
     */
    public static Model open(Path place) {
        return open(place, "auto");
    }

    /**
     * The same on a device of one's choice.
     *
     * @param device {@code auto}, {@code cpu}, {@code reference}, {@code cuda} or {@code cuda:N}
     */
    public static Model open(Path place, String device) {
        return open(place, device, Weights.FLOAT32);
    }

    /**
     * The same with weights in fewer bits.
     *
     * @throws PenstockException also of {@code cuda} and others than {@link Weights#FLOAT32}
     */
    public static Model open(Path place, String device, Weights weights) {
        requireNonNull(place, "place");
        requireNonNull(device, "device");
        requireNonNull(weights, "weights");
        JavaOptions.require();
        return Failures.telling(() -> Model.at(place, device, weights));
    }
}
