package dev.penstock.runtime.cli.run;

import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.FileCause;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.launch.ConfiguredFaults;
import dev.penstock.runtime.links.LinkCosts;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.metrics.RunDirectoryException;
import dev.penstock.runtime.metrics.RunLock;
import dev.penstock.runtime.report.FaultOutcome;
import dev.penstock.runtime.report.RecordedRun;
import dev.penstock.runtime.report.RunComparison;
import dev.penstock.runtime.report.RunReport;
import dev.penstock.schedules.ir.ScheduleTextException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Makes the report of a run whose process could not, or compares two runs. */
@Command(
        name = "report",
        description = {
            "Makes RUN_DIR/report.html and what belongs to it again, from the run's logs: for a"
                    + " run that was killed before it could.",
            "With OTHER_DIR, compares two runs: figures, how long their losses had the same bits,"
                    + " and what they were told differently."
        },
        footer = {
            "  penstock report runs/quickstart-1",
            "  penstock report runs/quickstart-1 runs/quickstart-2 --output both.html",
            "  penstock report runs/quickstart-1 runs/quickstart-2 --json"
        })
public final class ReportCommand extends PenstockCommand {
    @Parameters(index = "0", paramLabel = "RUN_DIR", description = "Directory of a run.")
    private Path first = Path.of("");

    @Parameters(
            index = "1",
            arity = "0..1",
            paramLabel = "OTHER_DIR",
            description = "Directory of another, to compare with.")
    private @Nullable Path second;

    @Option(
            names = {"-o", "--output"},
            paramLabel = "FILE",
            description =
                    "Of one run: write the page there and nothing else, also while it is under way."
                            + " Of two: write a page as well, with both loss curves.")
    private @Nullable Path output;

    @Option(names = "--json", description = "Of two: print one JSON document.")
    private boolean json;

    @Override
    public Integer call() {
        List<Problem> problems = new ArrayList<>();
        if (json && second == null) {
            problems.add(
                    Problem.atOption(
                            "--json",
                            "OTHER_DIR beside it",
                            "one run",
                            "penstock runs RUN_DIR --json tells of one"));
        }
        RunDirectory a = run("RUN_DIR", first, problems);
        Path other = second;
        Optional<RunDirectory> b =
                other == null ? Optional.empty() : Optional.of(run("OTHER_DIR", other, problems));
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
            if (b.isPresent()) {
                compare(a, b.get(), file);
            } else {
                report(a, file);
            }
            out().flush();
            return ExitCode.OK;
        } catch (IOException e) {
            throw new BadInputException(
                    "report: cannot read the logs or write the page: %s; try another --output"
                            .formatted(FileCause.withFile(e)));
        }
    }

    private void compare(RunDirectory a, RunDirectory b, @Nullable Path file) throws IOException {
        RunComparison comparison = RunComparison.of(a, b);
        if (file != null) {
            Files.writeString(file, comparison.html());
        }
        if (json) {
            printJson(comparison.answer());
            return;
        }
        out().print(comparison.text());
        if (file != null) {
            out().println("wrote " + file.toAbsolutePath());
        }
    }

    /** A run's own process has its directory's lock until it ends; a page elsewhere harms none. */
    private void report(RunDirectory directory, @Nullable Path file) throws IOException {
        RecordedRun recorded =
                RecordedRun.read(directory.events())
                        .orElseThrow(
                                () ->
                                        new BadInputException(
                                                (Files.exists(directory.events())
                                                                ? "report: expected the log of a run, got %s without the line that tells of its beginning: it is damaged"
                                                                : "report: expected the log of a run, got no %s; training writes it")
                                                        .formatted(directory.events())));
        boolean underWay = isUnderWay(directory);
        if (file != null) {
            write(report(directory, recorded).page(recorded.ending(underWay)), file);
            return;
        }
        if (underWay) {
            throw new BadInputException(
                    "report: %s is still running and will write its own report; watch it with `penstock ui` or `penstock top`, or use --output FILE for a page of what it has done so far"
                            .formatted(directory.path()));
        }
        if (recorded.hasEnded() && Files.exists(directory.report())) {
            out().printf(
                            "%s was written by the run and has more detail than can be rebuilt from its logs; use --output FILE to write another one from them%n",
                            directory.report());
            return;
        }
        try (RunLock _ = directory.lock()) {
            out().print(report(directory, recorded).write(recorded.ending(false)));
        }
    }

    /** Not known of a directory whose lock may not be opened: then it is taken to have ended. */
    private static boolean isUnderWay(RunDirectory directory) {
        try (RunLock _ = directory.lock()) {
            return false;
        } catch (RunDirectoryException e) {
            return e.getCause() == null;
        }
    }

    private void write(String page, Path file) throws IOException {
        Files.writeString(file, page);
        out().println("wrote " + file.toAbsolutePath());
    }

    private static RunReport report(RunDirectory directory, RecordedRun recorded) {
        RunConfig config =
                ConfigLoader.loadOfRun(directory.resolvedConfiguration(), List.of()).config();
        try {
            return recorded.report(
                    directory,
                    recoveries ->
                            FaultOutcome.of(
                                    ConfiguredFaults.plan(config),
                                    ConfiguredFaults.markers(directory.path()),
                                    recoveries),
                    LinkCosts.adding(config));
        } catch (ScheduleTextException e) {
            throw new BadInputException(
                    "report: expected a program that this version can read in %s, but %s; try the version that trained"
                            .formatted(directory.events(), e.getMessage()));
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
