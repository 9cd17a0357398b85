package dev.penstock.runtime.cli.checkpoint;

import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.runtime.checkpoint.GgufExport;
import dev.penstock.runtime.checkpoint.HuggingFaceExport;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.checkpoint.WeightsExport;
import dev.penstock.runtime.checkpoint.WeightsExport.Form;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.cli.command.TrainedModel;
import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.gguf.GgufModel;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.weights.WeightsFiles;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
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

    @Option(names = "--force", description = "Replace files that are there.")
    private boolean force;

    @Option(names = "--json", description = "Print one JSON document.")
    private boolean json;

    @Override
    public Integer call() throws IOException {
        boolean gguf = output.toString().endsWith(GGUF);
        Path config = gguf ? output : output.resolveSibling(ModelConfig.FILE);
        GgufModel.Form ggufForm = gguf ? arguments.ggufForm() : GgufModel.Form.F32;
        Form form = gguf ? Form.AS_STORED : arguments.form();
        requireGoodOutput(gguf, config);
        Answer answer;
        try (TrainedModel model = TrainedModel.open(path, err()::println)) {
            err().flush();
            answer =
                    answer(
                            model,
                            gguf ? writeGguf(model, ggufForm) : writeSafetensors(model, form),
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

    private List<Path> writeSafetensors(TrainedModel model, Form form) {
        Map<String, String> texts = arguments.tokenizerFiles(model);
        requireFree(WeightsExport.inTheWay(output, texts));
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

    private void requireGoodOutput(boolean gguf, Path config) {
        if (!gguf && !output.toString().endsWith(".safetensors")) {
            throw new BadInputException(
                    "--output: expected a name that ends with .safetensors or .gguf, got %s; try %s"
                            .formatted(output, output.resolve("model.safetensors")));
        }
        Path index = output.resolveSibling(output.getFileName() + WeightsFiles.INDEX);
        requireFree(Stream.of(output, index, config).distinct().filter(Files::exists).toList());
    }

    private void requireFree(List<Path> there) {
        if (!force && !there.isEmpty()) {
            throw new BadInputException(
                    "--output: expected no such files yet, got %s; try another folder, or --force to replace"
                            .formatted(
                                    there.stream()
                                            .map(Path::toString)
                                            .collect(Collectors.joining(" and "))));
        }
    }
}
