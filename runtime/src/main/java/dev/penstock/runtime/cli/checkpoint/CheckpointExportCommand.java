package dev.penstock.runtime.cli.checkpoint;

import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.runtime.checkpoint.GgufExport;
import dev.penstock.runtime.checkpoint.HuggingFaceExport;
import dev.penstock.runtime.checkpoint.PeftAdapter;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.checkpoint.WeightsExport;
import dev.penstock.runtime.checkpoint.WeightsExport.Form;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.gguf.GgufModel;
import dev.penstock.runtime.inference.TrainedModel;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.weights.WeightsFiles;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Joins the stages of a checkpoint into the file, or the files, that other programs read. */
@Command(
        name = "export",
        description = {
            "Writes a model's weights as safetensors or as GGUF.",
            "Beside safetensors config.json and the tokenizer are put, as in a Hugging Face"
                    + " folder; train --init and generate read it, too. GGUF, for llama.cpp and"
                    + " other engines, has all in one file."
        },
        footer = {
            "  penstock checkpoint export runs/quickstart-1 --output gpt/model.safetensors",
            "  penstock checkpoint export runs/quickstart-1 --output gpt/model.safetensors \\",
            "      --type bf16 --part-size 2GB",
            "  penstock checkpoint export runs/quickstart-1 --output gpt.gguf --type q8_0",
            "  penstock checkpoint export runs/tuned-1 --adapter \\",
            "      --output my-adapter/adapter_model.safetensors",
            "  penstock train my.conf --init gpt/model.safetensors",
        })
final class CheckpointExportCommand extends PenstockCommand {
    private static final String GGUF = ".gguf";

    /**
     * The answer for programs.
     *
     * @param weights the file, or the first of several
     * @param bytes of all files with weights
     * @param config the file with the model's shape
     */
    record Answer(
            String checkpoint,
            long step,
            String weights,
            List<String> files,
            long bytes,
            String config,
            ModelConfig model) {}

    @Parameters(
            paramLabel = "CHECKPOINT|RUN_DIR|WEIGHTS",
            description =
                    "A checkpoint, a run's folder (its newest whole checkpoint), or Hugging Face"
                            + " weights with their config.json.")
    @SuppressWarnings("NullAway.Init") // required: set by picocli
    private Path path;

    @Option(
            names = "--output",
            required = true,
            paramLabel = "FILE",
            description =
                    "Where the weights go, such as gpt/model.safetensors, with config.json beside;"
                            + " or a name that ends with .gguf.")
    @SuppressWarnings("NullAway.Init") // required: set by picocli
    private Path output;

    @Mixin private ExportArguments arguments = new ExportArguments();

    @Option(
            names = "--adapter",
            description =
                    "Write the run's adapter alone, as PEFT reads it, with adapter_config.json"
                            + " beside; without this it is merged.")
    private boolean adapter;

    @Option(
            names = "--base",
            paramLabel = "NAME",
            defaultValue = "",
            description =
                    "What adapter_config.json calls the model that the adapter belongs to: a"
                            + " folder, or a name on a hub.")
    @SuppressWarnings("NullAway.Init") // set by picocli
    private String base;

    @Option(names = "--force", description = "Replace files that are there.")
    private boolean force;

    @Option(names = "--json", description = "Print one JSON document.")
    private boolean json;

    @Override
    public Integer call() throws IOException {
        boolean gguf = output.toString().endsWith(GGUF);
        if (adapter) {
            return exportAdapter();
        }
        Path config = gguf ? output : output.resolveSibling(ModelConfig.FILE);
        List<Problem> problems = new ArrayList<>(arguments.problems(gguf));
        problems.addAll(problemsOfOutput(gguf, config));
        Answer answer;
        try (TrainedModel model = open(problems)) {
            err().flush();
            answer =
                    answer(
                            model,
                            gguf
                                    ? writeGguf(model, arguments.ggufForm())
                                    : writeSafetensors(model, arguments.form()),
                            config);
        }
        if (json) {
            printJson(answer);
        } else {
            out().printf(
                            "%s: step %d of %s, %,d bytes%s; its shape is in %s%n",
                            answer.weights(),
                            answer.step(),
                            answer.checkpoint(),
                            answer.bytes(),
                            answer.files().size() == 1
                                    ? ""
                                    : " in %d files".formatted(answer.files().size()),
                            answer.config());
        }
        return ExitCode.OK;
    }

    private int exportAdapter() throws IOException {
        Path config = output.resolveSibling(PeftAdapter.CONFIG);
        List<Problem> problems = new ArrayList<>();
        if (!output.endsWith(PeftAdapter.WEIGHTS)) {
            problems.add(
                    Problem.atOption(
                            "--output",
                            "a file called %s, where PEFT looks for it"
                                    .formatted(PeftAdapter.WEIGHTS),
                            output.toString(),
                            "try " + output.resolveSibling(PeftAdapter.WEIGHTS)));
        }
        if (!arguments.form().equals(Form.AS_STORED)) {
            problems.add(
                    Problem.atOption(
                            "--adapter",
                            "no --type and --part-size",
                            "one of them",
                            "an adapter is written as f32, in one file"));
        }
        problems.addAll(problemsOf(Stream.of(output, config).filter(Files::exists).toList()));
        if (!problems.isEmpty()) {
            throw new ConfigException(problems);
        }
        try (TrainedModel model = TrainedModel.asSaved(path, err()::println)) {
            err().flush();
            List<Path> files = PeftAdapter.write(output, model.config(), model.tensors(), base);
            Answer answer = answer(model, files, config);
            if (json) {
                printJson(answer);
            } else {
                out().printf(
                                "%s: adapter of step %d of %s, %,d bytes; its settings are in %s%n",
                                answer.weights(),
                                answer.step(),
                                answer.checkpoint(),
                                answer.bytes(),
                                answer.config());
            }
        }
        return ExitCode.OK;
    }

    /**
     * Opens the model.
     *
     * @throws ConfigException with what is wrong with the options and with the model
     */
    private TrainedModel open(List<Problem> problems) {
        try {
            TrainedModel model = TrainedModel.open(path, err()::println);
            if (problems.isEmpty()) {
                return model;
            }
            model.close();
        } catch (StoredFileException e) {
            if (problems.isEmpty()) {
                throw e;
            }
            problems.add(Problem.atOption("CHECKPOINT", "", String.valueOf(e.getMessage()), ""));
        }
        throw new ConfigException(problems);
    }

    private List<Path> writeSafetensors(TrainedModel model, Form form) {
        Map<String, String> texts = arguments.tokenizerFiles(model);
        List<Problem> problems = problemsOf(WeightsExport.inTheWay(output, texts));
        if (!problems.isEmpty()) {
            throw new ConfigException(problems);
        }
        return HuggingFaceExport.write(output, model.config(), model.tensors(), form, texts);
    }

    private List<Path> writeGguf(TrainedModel model, GgufModel.Form form) throws IOException {
        GgufExport.write(
                output,
                GgufModel.of(
                        path,
                        new ObjectMapper().readTree(model.config().toJson()),
                        HuggingFaceExport.published(model.config(), model.tensors()),
                        arguments.vocabulary(model),
                        form),
                model.tensors());
        return List.of(output);
    }

    private Answer answer(TrainedModel model, List<Path> files, Path config) throws IOException {
        long bytes = 0;
        for (Path file : files) {
            bytes += Files.size(file);
        }
        return new Answer(
                model.checkpoint().map(SavedCheckpoint::path).orElse(path).toString(),
                model.checkpoint().map(SavedCheckpoint::step).orElse(0L),
                files.getFirst().toString(),
                files.stream().map(Path::toString).toList(),
                bytes,
                config.toString(),
                model.config());
    }

    private List<Problem> problemsOfOutput(boolean gguf, Path config) {
        List<Problem> problems = new ArrayList<>();
        if (!gguf && !output.toString().endsWith(".safetensors")) {
            problems.add(
                    Problem.atOption(
                            "--output",
                            "a name that ends with .safetensors or .gguf",
                            output.toString(),
                            "try " + output.resolve("model.safetensors")));
            return problems;
        }
        Path index = output.resolveSibling(output.getFileName() + WeightsFiles.INDEX);
        Set<Path> left = gguf ? Set.of() : WeightsExport.leftBehind(output);
        problems.addAll(
                problemsOf(
                        Stream.of(output, index, config)
                                .distinct()
                                .filter(file -> Files.exists(file) && !left.contains(file))
                                .toList()));
        return problems;
    }

    private List<Problem> problemsOf(List<Path> there) {
        if (force || there.isEmpty()) {
            return List.of();
        }
        return List.of(
                Problem.atOption(
                        "--output",
                        "no such files yet",
                        there.stream().map(Path::toString).collect(Collectors.joining(" and ")),
                        "try another folder, or --force to replace"));
    }
}
