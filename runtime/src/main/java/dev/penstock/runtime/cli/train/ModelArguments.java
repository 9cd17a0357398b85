package dev.penstock.runtime.cli.train;

import dev.penstock.cuda.device.AttentionShape;
import dev.penstock.runtime.cli.command.WholeNumber;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.run.DeviceKind;
import dev.penstock.runtime.inference.TrainedModel;
import dev.penstock.runtime.tokenizer.Tokenizer;
import dev.penstock.runtime.tokenizer.TokenizerFileException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** With which tokenizer, and on which devices, a trained model is used. */
final class ModelArguments {
    @Option(
            names = "--stages",
            paramLabel = "P",
            description = "Stages of the pipeline (default: what the run has, else 1).")
    @WholeNumber(from = 1)
    private @Nullable Integer stages;

    @Option(
            names = "--device",
            paramLabel = "KIND",
            description =
                    "auto, cpu, reference (plain scalar code), cuda (GPUs in turn) or cuda:N, for"
                            + " every stage (default: auto).")
    private @Nullable String device;

    @Option(
            names = "--tokenizer",
            paramLabel = "NAME|PATH",
            description =
                    "bytes, gpt2, or a folder with tokenizer.json or vocab.json and merges.txt"
                            + " (default: the run's, the one beside the weights, or what fits the"
                            + " model's vocabulary).")
    private @Nullable String tokenizer;

    /** What is wrong with these options, whatever the model. */
    List<Problem> problems() {
        List<Problem> problems = new ArrayList<>();
        if (tokenizer != null
                && !Tokenizer.names().contains(tokenizer)
                && !Files.exists(Path.of(tokenizer))) {
            problems.add(
                    Problem.atOption(
                            "--tokenizer",
                            "one of %s, or a path to a tokenizer's files"
                                    .formatted(String.join(", ", Tokenizer.names())),
                            tokenizer,
                            ""));
            tokenizer = null;
        }
        if (device != null && !DeviceKind.isKind(device)) {
            problems.add(
                    Problem.atOption(
                            "--device", "auto, cpu, reference, cuda or cuda:N", device, ""));
            device = null;
        }
        return problems;
    }

    /** The device that was asked for; empty: what is usual. */
    Optional<DeviceKind> device() {
        return Optional.ofNullable(device).map(DeviceKind::new);
    }

    /**
     * Opens the tokenizer that was asked for, else the model's own.
     *
     * @param own its name or path; empty where nothing says it
     * @param problems found so far
     * @throws ConfigException with these and its own, if nothing says it and the vocabulary is of
     *     no built-in tokenizer: figures and texts would be of something else
     */
    Tokenizer tokenizerOf(TrainedModel model, Optional<String> own, List<Problem> problems) {
        int vocabulary = model.config().shape().vocabulary();
        String name =
                Optional.ofNullable(tokenizer)
                        .or(() -> own)
                        .or(model::tokenizerOfItsSize)
                        .orElseThrow(() -> noTokenizer(vocabulary, problems));
        try {
            return Tokenizer.open(name);
        } catch (TokenizerFileException e) {
            List<Problem> all = new ArrayList<>(problems);
            all.add(Problem.atOption("--tokenizer", "", String.valueOf(e.getMessage()), ""));
            throw new ConfigException(all);
        }
    }

    /** The name or path of the tokenizer that was named, or is the model's; empty if none is. */
    Optional<String> tokenizerName(TrainedModel model) {
        return Optional.ofNullable(tokenizer).or(model::tokenizer);
    }

    /** The same, or the name of the built-in one that fits; of files the absolute path. */
    Optional<String> tokenizerToSay(TrainedModel model) {
        return tokenizerName(model)
                .or(model::tokenizerOfItsSize)
                .map(
                        named ->
                                Tokenizer.names().contains(named)
                                        ? named
                                        : Path.of(named).toAbsolutePath().normalize().toString());
    }

    /**
     * What a GPU refuses of a model, before anything is loaded onto it.
     *
     * @param usual the device if none was asked for
     */
    List<Problem> problemsOfDevice(TrainedModel model, DeviceKind usual) {
        DeviceKind used = device().orElse(usual);
        int columns = model.shape().block().heads().size();
        if (!used.isCuda() || columns <= AttentionShape.MOST_COLUMNS_ON_GPU) {
            return List.of();
        }
        return List.of(
                Problem.atOption(
                        "--device",
                        "a model whose heads have at most %d columns for %s"
                                .formatted(AttentionShape.MOST_COLUMNS_ON_GPU, used.word()),
                        "" + columns,
                        "try --device cpu"));
    }

    private static ConfigException noTokenizer(int vocabulary, List<Problem> problems) {
        List<Problem> all = new ArrayList<>(problems);
        all.add(
                Problem.atOption(
                        "--tokenizer",
                        "the tokenizer of a vocabulary of %,d, as none lies beside the weights"
                                .formatted(vocabulary),
                        "none",
                        "give the folder of its files, or bytes or gpt2"));
        return new ConfigException(all);
    }

    /**
     * The stages that were asked for, else those of the run.
     *
     * @param problems receives one if the model cannot be cut into so many
     */
    int stagesOf(TrainedModel model, int ofRun, List<Problem> problems) {
        return stagesOf(model, ofRun, model.shape().layers() + 2, problems);
    }

    /**
     * The same where there can be fewer.
     *
     * @param most stages that the model can be cut into
     */
    int stagesOf(TrainedModel model, int ofRun, int most, List<Problem> problems) {
        int wanted = stages == null ? ofRun : stages;
        if (wanted < 1 || wanted > most) {
            problems.add(
                    Problem.atOption(
                            "--stages",
                            "1 to %d for a model of %d layers"
                                    .formatted(most, model.shape().layers()),
                            "" + wanted,
                            ""));
        }
        return wanted;
    }

    /** Whether none of these options was given. */
    boolean areUsual() {
        return stages == null && device == null && tokenizer == null;
    }
}
