package dev.penstock.runtime.cli.checkpoint;

import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.checkpoint.CheckpointReader;
import dev.penstock.runtime.checkpoint.HuggingFaceExport;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.model.family.ModelConfig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Joins the stages of a checkpoint into the one file that other programs read. */
@Command(
        name = "export",
        description = {
            "Writes a checkpoint's weights as one safetensors file.",
            "Names are those of Hugging Face's GPT-2, and config.json is put beside; train --init"
                    + " and generate read it, too."
        },
        footer = {
            "  penstock checkpoint export runs/quickstart-1 --output gpt/model.safetensors",
            "  penstock train my.conf --init gpt/model.safetensors",
        })
final class CheckpointExportCommand extends PenstockCommand {
    /** The answer for programs. */
    record Answer(
            String checkpoint,
            long step,
            String weights,
            long bytes,
            String config,
            ModelConfig model) {}

    @Parameters(
            paramLabel = "CHECKPOINT|RUN_DIR",
            description = "A checkpoint, or a run's folder (its newest whole checkpoint).")
    @SuppressWarnings("NullAway.Init") // required: set by picocli
    private Path path;

    @Option(
            names = "--output",
            required = true,
            paramLabel = "FILE",
            description =
                    "Where the weights go, such as gpt/model.safetensors; config.json goes beside.")
    @SuppressWarnings("NullAway.Init") // required: set by picocli
    private Path output;

    @Option(names = "--force", description = "Replace files that are there.")
    private boolean force;

    @Option(names = "--json", description = "Print one JSON document.")
    private boolean json;

    @Override
    public Integer call() throws IOException {
        Path config = output.resolveSibling(ModelConfig.FILE);
        requireGoodOutput(config);
        SavedCheckpoint checkpoint = CheckpointFolders.find(path, err()::println);
        err().flush();
        ModelConfig model = checkpoint.manifest().model();
        try (CheckpointReader reader = checkpoint.read()) {
            HuggingFaceExport.write(output, model, reader);
        }
        var answer =
                new Answer(
                        checkpoint.path().toString(),
                        checkpoint.step(),
                        output.toString(),
                        Files.size(output),
                        config.toString(),
                        model);
        if (json) {
            printJson(answer);
        } else {
            out().printf(
                            "%s: step %d of %s, %,d bytes; its shape is in %s%n",
                            answer.weights(),
                            answer.step(),
                            answer.checkpoint(),
                            answer.bytes(),
                            answer.config());
        }
        return ExitCode.OK;
    }

    private void requireGoodOutput(Path config) {
        if (!output.toString().endsWith(".safetensors")) {
            throw new BadInputException(
                    "--output: expected a name that ends with .safetensors, got %s; try %s"
                            .formatted(output, output.resolve("model.safetensors")));
        }
        List<Path> there = Stream.of(output, config).filter(Files::exists).toList();
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
