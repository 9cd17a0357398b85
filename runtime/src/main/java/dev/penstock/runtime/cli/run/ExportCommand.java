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
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
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
            "      --output tb/quickstart/events.out.tfevents.1",
            "  penstock export runs/quickstart-1 --as tensorboard --follow \\",
            "      --output tb/quickstart/events.out.tfevents.1     # while it trains"
        })
public final class ExportCommand extends PenstockCommand {
    /** Of the file. */
    enum Format {
        csv,
        tensorboard
    }

    private static final Duration LOOK = Duration.ofSeconds(1);

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

    @Option(
            names = "--follow",
            description =
                    "Go on writing while the run trains, for a TensorBoard that watches; ends with"
                            + " the run, or at Ctrl-C.")
    private boolean follow;

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
        if (follow && format != Format.tensorboard) {
            problems.add(
                    Problem.atOption(
                            "--follow",
                            "--as tensorboard",
                            "--as " + format,
                            "a table is written once: leave --follow out"));
        }
        if (!problems.isEmpty()) {
            throw new ConfigException(problems);
        }
        if (follow) {
            follow(metrics, file);
        } else {
            write(metrics, file);
        }
        out().println("wrote " + file);
        return ExitCode.OK;
    }

    /** Into the file itself: whoever watches has it open. */
    private void follow(Path metrics, Path file) {
        var run = new RunDirectory(runDirectory);
        try {
            makeFolderOf(file);
            try (OutputStream bytes = new BufferedOutputStream(Files.newOutputStream(file))) {
                out().println("follows %s into %s".formatted(runDirectory, file));
                out().flush();
                TensorBoardEvents.follow(
                        metrics,
                        bytes,
                        () -> {
                            LockSupport.parkNanos(LOOK.toNanos());
                            return run.livingKeeper().isPresent();
                        });
            }
        } catch (IOException e) {
            throw notWritten(file, e);
        }
    }

    private static void makeFolderOf(Path file) throws IOException {
        Files.createDirectories(file.getParent() == null ? file : file.getParent());
    }

    private static BadInputException notWritten(Path file, IOException e) {
        return new BadInputException(
                "--output: expected a file that can be written, but %s: %s; try another place"
                        .formatted(file, e));
    }

    private void write(Path metrics, Path file) {
        Path part = file.resolveSibling(file.getFileName() + ".part");
        try {
            makeFolderOf(part);
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
            throw notWritten(file, e);
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
