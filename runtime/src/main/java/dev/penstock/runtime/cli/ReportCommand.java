package dev.penstock.runtime.cli;

import dev.penstock.runtime.config.ConfigException;
import dev.penstock.runtime.config.Problem;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.report.RunComparison;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Compares two runs. */
@Command(
        name = "report",
        description = {
            "Compares two runs: figures, how long their losses had the same bits, and what they"
                    + " were told differently.",
            "The report of one run is RUN_DIR/report.html."
        },
        footer = "  penstock report runs/quickstart-1 runs/quickstart-2 --output both.html")
final class ReportCommand extends PenstockCommand {
    @Parameters(index = "0", paramLabel = "RUN_DIR", description = "Directory of a run.")
    private Path first = Path.of("");

    @Parameters(index = "1", paramLabel = "OTHER_DIR", description = "Directory of another.")
    private Path second = Path.of("");

    @Option(
            names = {"-o", "--output"},
            paramLabel = "FILE",
            description = "Write it as a page as well, with both loss curves.")
    private @Nullable Path output;

    @Override
    public Integer call() {
        List<Problem> problems = new ArrayList<>();
        RunDirectory a = run("RUN_DIR", first, problems);
        RunDirectory b = run("OTHER_DIR", second, problems);
        Path file = output;
        if (file != null && Files.isDirectory(file)) {
            problems.add(
                    Problem.atOption(
                            "--output", "a file", file + ", a directory", "name a file in it"));
        }
        if (!problems.isEmpty()) {
            throw new ConfigException(problems);
        }
        try {
            RunComparison comparison = RunComparison.of(a, b);
            out().print(comparison.text());
            if (file != null) {
                Files.writeString(file, comparison.html());
                out().println("wrote " + file.toAbsolutePath());
            }
            out().flush();
            return ExitCode.OK;
        } catch (IOException e) {
            throw new BadInputException(
                    "report: expected files that can be read and written, but %s; try another --output"
                            .formatted(e));
        }
    }

    private static RunDirectory run(String option, Path path, List<Problem> problems) {
        var directory = new RunDirectory(path);
        if (!Files.isReadable(directory.metrics())) {
            problems.add(
                    Problem.atOption(
                            option,
                            "the directory of a run, with " + directory.metrics().getFileName(),
                            "no " + directory.metrics(),
                            "use the directory that the run printed when it began"));
        }
        return directory;
    }
}
