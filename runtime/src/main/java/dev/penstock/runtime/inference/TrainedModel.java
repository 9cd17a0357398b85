package dev.penstock.runtime.inference;

import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.checkpoint.HuggingFaceWeights;
import dev.penstock.runtime.checkpoint.MergedTensors;
import dev.penstock.runtime.checkpoint.ModelTensors;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.DataSection;
import dev.penstock.runtime.config.run.DraftConfig;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;

/**
 * A model that a user names by a path: a run's folder, one of its checkpoints, or weights in the
 * Hugging Face format with their {@code config.json}.
 *
 * @param checkpoint where it is one
 */
public record TrainedModel(
        ModelConfig config, ModelTensors tensors, Optional<SavedCheckpoint> checkpoint)
        implements AutoCloseable {
    /** Vocabularies are often padded, to a multiple of this at most. */
    private static final int PADDING = 128;

    /**
     * Opens it, with its adapters merged; the caller closes it.
     *
     * @param notes receives what was passed over, such as a damaged checkpoint
     * @throws StoredFileException if there is no such model, or it is not whole
     */
    public static TrainedModel open(Path path, Consumer<String> notes) {
        TrainedModel saved = asSaved(path, notes);
        ModelConfig model = saved.config();
        return new TrainedModel(
                model.base(), MergedTensors.of(saved.tensors(), model), saved.checkpoint());
    }

    /**
     * Same as {@link #open} for those who continue or score texts.
     *
     * @throws StoredFileException also if the model does not predict the next token
     */
    public static TrainedModel openForText(Path path, Consumer<String> notes) {
        TrainedModel model = open(path, notes);
        if (model.shape().block().encoder() != null) {
            model.close();
            throw new StoredFileException(
                    path,
                    "expected a model that predicts the next token, got a %s, whose tokens see those behind them%s"
                            .formatted(
                                    model.config().family().word(),
                                    model.shape().classifies()
                                            ? "; try penstock evaluate with --data and --texts"
                                            : ""));
        }
        return model;
    }

    /** Opens it as a run goes on with it, with its adapters apart; the caller closes it. */
    public static TrainedModel asSaved(Path path, Consumer<String> notes) {
        TrainedModel model =
                Files.isRegularFile(path) || HuggingFaceWeights.areIn(path)
                        ? fromWeights(path)
                        : fromCheckpoint(CheckpointFolders.find(path, notes));
        try {
            model.tensors().requireParameters(model.config());
        } catch (StoredFileException e) {
            model.close();
            throw e;
        }
        return model;
    }

    private static TrainedModel fromCheckpoint(SavedCheckpoint checkpoint) {
        return new TrainedModel(
                checkpoint.manifest().model(), checkpoint.read(), Optional.of(checkpoint));
    }

    private static TrainedModel fromWeights(Path path) {
        HuggingFaceWeights weights = HuggingFaceWeights.open(path);
        ModelConfig config =
                weights.config()
                        .orElseThrow(
                                () -> {
                                    weights.close();
                                    return new StoredFileException(
                                            path,
                                            "expected a config.json beside the weights, got none");
                                });
        return new TrainedModel(config, weights, Optional.empty());
    }

    /** The model's shape, for those who compute with it. */
    public ModelShape shape() {
        return config.shape();
    }

    /** Stages of its run's pipeline; 1 where there is no run to ask. */
    public int stagesOfRun() {
        return configurationOfRun()
                .filter(draft -> draft.sound("pipeline.stages"))
                .map(draft -> draft.draft().config().pipeline().stages())
                .orElse(1);
    }

    /** Tokens of a sequence of its run; empty where there is no run to ask. */
    public Optional<Integer> contextOfRun() {
        return configurationOfRun()
                .filter(draft -> draft.sound("model.context"))
                .map(draft -> draft.draft().config().model().context());
    }

    private Optional<RunDirectory> run() {
        return checkpoint
                .map(saved -> saved.path().toAbsolutePath().getParent())
                .map(Path::getParent)
                .map(RunDirectory::new);
    }

    private Optional<DraftConfig> configurationOfRun() {
        return run().map(RunDirectory::resolvedConfiguration)
                .filter(Files::isReadable)
                .map(file -> ConfigLoader.draftOfRun(file, List.of()));
    }

    /**
     * The tokenizer that belongs to it: its run's, or that of files beside its weights, or beside
     * those that it was converted from; empty where there are none, or the model has more tokens
     * than a built-in one.
     *
     * @throws BadInputException if its run's is not where it was
     */
    public Optional<String> tokenizer() {
        Optional<DraftConfig> run = configurationOfRun();
        if (run.isEmpty()) {
            Optional<Path> files =
                    checkpoint.isPresent()
                            ? run().map(RunDirectory::tokenizerFiles)
                            : Optional.ofNullable(tensors.path().toAbsolutePath().getParent());
            return files.filter(Tokenizer::isIn).map(Path::toString);
        }
        if (!run.get().sound("data.tokenizer")) {
            throw new BadInputException(
                    "%s: its data.tokenizer is not where it was; name it with --tokenizer"
                            .formatted(tensors.path()));
        }
        return Optional.of(run.get().draft().config().data().tokenizer())
                .filter(
                        own ->
                                own.vocabulary() == config.shape().vocabulary()
                                        || isPath(own.word()))
                .map(DataSection.Tokenizer::word);
    }

    /** The name of the built-in tokenizer that has as many tokens as the model, if one has. */
    public Optional<String> tokenizerOfItsSize() {
        int vocabulary = config.shape().vocabulary();
        int gpt2 = DataSection.Tokenizer.GPT2.vocabulary();
        if (vocabulary == DataSection.Tokenizer.BYTES.vocabulary()) {
            return Optional.of("bytes");
        }
        return vocabulary >= gpt2 && vocabulary < gpt2 + PADDING
                ? Optional.of("gpt2")
                : Optional.empty();
    }

    /** The tokenizer's name or path in the configuration of its run; empty where there is none. */
    public Optional<String> tokenizerOfRun() {
        return configurationOfRun()
                .filter(draft -> draft.sound("data.tokenizer"))
                .map(draft -> draft.draft().config().data().tokenizer().word());
    }

    /** The template of its run's chats; empty where it read none, or there is no run to ask. */
    public Optional<String> chatTemplateOfRun() {
        return configurationOfRun()
                .filter(draft -> draft.sound("data.template"))
                .map(draft -> draft.draft().config().data())
                .filter(data -> data.format() == DataSection.Format.CHAT)
                .map(data -> data.template().word());
    }

    private static boolean isPath(String word) {
        return !Tokenizer.names().contains(word);
    }

    @Override
    public void close() {
        tensors.close();
    }
}
