package dev.penstock.runtime.cli.run;

import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.export.CsvTable;
import dev.penstock.runtime.export.TensorBoardEvents;
import dev.penstock.runtime.metrics.RunDirectory;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Writes a run's metrics for other tools. */
@Command(
        name = "export",
        description = {
            "Writes a run's metrics for other tools: a table of values, or an event file that"
                    + " TensorBoard reads.",
            "The metrics themselves are JSON, a line each: RUN_DIR/metrics.jsonl."
        },
        footer = {
            "  penstock export runs/quickstart-1 --as csv --output quickstart.csv",
            "  penstock export runs/quickstart-1 --as tensorboard \\",
            "      --output tb/quickstart/events.out.tfevents.1"
        })
public final class ExportCommand extends PenstockCommand {
    /** Of the file. */
    enum Format {
        csv,
        tensorboard
    }

    @Parameters(paramLabel = "RUN_DIR", description = "Directory of a run.")
    private Path runDirectory = Path.of("");

    @Option(
            names = "--as",
            paramLabel = "FORMAT",
            required = true,
            description = "One of ${COMPLETION-CANDIDATES}.")
    private Format format = Format.csv;

    @Option(
            names = {"-o", "--output"},
            paramLabel = "FILE",
            required = true,
            description = "Where to write; folders are made, an existing file is replaced.")
    private @Nullable Path output;

    @Override
    public Integer call() {
        Path metrics = new RunDirectory(runDirectory).metrics();
        List<Problem> problems = new ArrayList<>();
        if (!Files.isReadable(metrics)) {
            problems.add(
                    Problem.atOption(
                            "RUN_DIR",
                            "the directory of a run, with " + metrics.getFileName(),
                            "no " + metrics,
                            "use the directory that the run printed when it began"));
        }
        Path file = (output == null ? Path.of("") : output).toAbsolutePath();
        if (Files.isDirectory(file)) {
            problems.add(
                    Problem.atOption(
                            "--output", "a file", file + ", a directory", "name a file in it"));
        }
        if (!problems.isEmpty()) {
            throw new ConfigException(problems);
        }
        write(metrics, file);
        out().println("wrote " + file);
        return ExitCode.OK;
    }

    private void write(Path metrics, Path file) {
        Path part = file.resolveSibling(file.getFileName() + ".part");
        try {
            Files.createDirectories(part.getParent() == null ? file : part.getParent());
            try (OutputStream bytes = new BufferedOutputStream(Files.newOutputStream(part))) {
                switch (format) {
                    case csv -> {
                        Writer text = new OutputStreamWriter(bytes, StandardCharsets.UTF_8);
                        CsvTable.write(metrics, text);
                        text.flush();
                    }
                    case tensorboard -> TensorBoardEvents.write(metrics, bytes);
                }
            }
            Files.move(
                    part,
                    file,
                    StandardCopyOption.ATOMIC_MOVE,
                    StandardCopyOption.REPLACE_EXISTING);
        } catch (IOException e) {
            discard(part);
            throw new BadInputException(
                    "--output: expected a file that can be written, but %s: %s; try another place"
                            .formatted(file, e));
        }
    }

    private static void discard(Path part) {
        try {
            Files.deleteIfExists(part);
        } catch (IOException e) {
            // said with the failure that matters
        }
    }
}
