package dev.penstock.runtime.cli.run;

import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.FileCause;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.metrics.Quantities;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.runs.LocalRun;
import dev.penstock.runtime.runs.LocalRuns;
import dev.penstock.runtime.runs.RunRemoval;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Collectors;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Frees the space of runs that have ended. */
@Command(
        name = "prune",
        description = {
            "Removes the checkpoints of complete runs but the newest, after reading that in full;"
                    + " with --whole, removes everything that a run wrote.",
            "It shows what would go, and removes it only with --yes. A run that a process trains is"
                    + " left alone, as is everything that no run wrote; symbolic links are not"
                    + " followed."
        },
        footer = {
            "  penstock prune runs/quickstart-1 --dry-run",
            "  penstock prune runs/quickstart-1 --yes",
            "  penstock prune runs/quickstart-1 runs/quickstart-2 --whole --yes"
        })
public final class PruneCommand extends PenstockCommand {
    /**
     * The answer for programs.
     *
     * @param removed whether it is gone; else it would go
     * @param bytes of all runs that are or would become free
     */
    record Answer(boolean removed, long bytes, List<Pruned> runs) {}

    /**
     * What goes and what stays of a run.
     *
     * @param goes files and folders below the run's
     */
    record Pruned(String run, List<String> goes, long bytes, List<String> stays) {}

    @Parameters(
            arity = "1..*",
            paramLabel = "RUN_DIR",
            description = "Directories of runs, see penstock runs.")
    private List<Path> directories = new ArrayList<>();

    @Option(names = "--whole", description = "Remove whole runs, also such as are not complete.")
    private boolean whole;

    @Option(names = "--dry-run", description = "Show what would go and remove nothing.")
    private boolean dryRun;

    @Option(names = "--yes", description = "Remove it.")
    private boolean yes;

    @Option(names = "--json", description = "Print one JSON document.")
    private boolean json;

    @Override
    public Integer call() {
        List<Problem> problems = new ArrayList<>();
        if (dryRun && yes) {
            problems.add(
                    Problem.atOption(
                            "--dry-run and --yes", "one of them", "both", "leave one out"));
        }
        List<RunDirectory> runs = new ArrayList<>();
        for (Path path : new LinkedHashSet<>(directories)) {
            problemOf(path).ifPresentOrElse(problems::add, () -> runs.add(new RunDirectory(path)));
        }
        if (!problems.isEmpty()) {
            throw new ConfigException(problems);
        }
        List<Pruned> pruned = runs.stream().map(this::prune).toList();
        long bytes = pruned.stream().mapToLong(Pruned::bytes).sum();
        if (json) {
            printJson(new Answer(yes, bytes, pruned));
        } else if (!yes) {
            out().printf(
                            "nothing was removed; --yes removes this and frees %s%n",
                            Quantities.bytes(bytes));
        } else {
            out().printf("%s are free now%n", Quantities.bytes(bytes));
        }
        return ExitCode.OK;
    }

    private Optional<Problem> problemOf(Path path) {
        if (Files.isSymbolicLink(path)) {
            return problem(
                    "the directory of a run",
                    path + ", a symbolic link",
                    "name the directory that it points to");
        }
        if (!new RunDirectory(path).holdsRun()) {
            return problem(
                    "the directory of a run", path.toString(), "penstock runs FOLDER lists them");
        }
        try {
            return problemOf(LocalRuns.of(path));
        } catch (IOException e) {
            return problem(
                    "the directory of a run that can be read",
                    "%s (%s)".formatted(path, FileCause.withFile(e)),
                    "check its permissions");
        }
    }

    private Optional<Problem> problemOf(LocalRun run) {
        if (run.keeper().isPresent()) {
            return problem(
                    "a run that has ended",
                    "%s, which %s trains".formatted(run.path(), run.keeper().get().told()),
                    "wait for it, or ask it to end: penstock stop " + run.path());
        }
        if (run.state() == LocalRun.State.STOPPED
                && Files.exists(run.path().resolve("cluster.txt"))) {
            return problem(
                    "a run that has ended",
                    run.path() + ", which its cluster goes on with when it is started again",
                    "start the cluster and use penstock stop there");
        }
        if (!whole && run.state() != LocalRun.State.COMPLETE) {
            return problem(
                    "a complete run",
                    "%s, %s after step %d of %d"
                            .formatted(
                                    run.path(),
                                    run.state().name().toLowerCase(Locale.ROOT),
                                    run.step(),
                                    run.steps()),
                    "finish it with --resume, or remove all of it with --whole");
        }
        return Optional.empty();
    }

    private static Optional<Problem> problem(String expected, String got, String advice) {
        return Optional.of(Problem.atOption("RUN_DIR", expected, got, advice));
    }

    /** Shows what goes, and lets it go if that was asked for. */
    private Pruned prune(RunDirectory run) {
        String path = run.path().toString();
        try {
            Optional<RunRemoval.Plan> plan =
                    whole ? Optional.of(everything(run)) : checkpoints(run);
            if (plan.isEmpty()) {
                say("%s: no checkpoint is whole, so all stay".formatted(path));
                return new Pruned(path, List.of(), 0, List.of());
            }
            say(told(run, plan.get()));
            return new Pruned(
                    path,
                    plan.get().goes().stream()
                            .map(goes -> run.path().relativize(goes).toString())
                            .toList(),
                    plan.get().bytes(),
                    plan.get().stays());
        } catch (IOException e) {
            throw new BadInputException(
                    "prune: cannot read or remove files: %s".formatted(FileCause.withFile(e)));
        }
    }

    private RunRemoval.Plan everything(RunDirectory run) throws IOException {
        return yes ? RunRemoval.removeEverything(run) : RunRemoval.everything(run);
    }

    private Optional<RunRemoval.Plan> checkpoints(RunDirectory run) throws IOException {
        return yes
                ? RunRemoval.removeCheckpoints(run, this::warn)
                : RunRemoval.checkpoints(run, this::warn);
    }

    private String told(RunDirectory run, RunRemoval.Plan plan) {
        String goes =
                plan.goes().isEmpty()
                        ? "nothing"
                        : whole && plan.stays().isEmpty()
                                ? "everything"
                                : plan.goes().stream()
                                        .map(path -> run.path().relativize(path).toString())
                                        .collect(Collectors.joining(", "));
        return "%s: %s %s (%s)%s"
                .formatted(
                        run.path(),
                        yes ? "removed" : "would remove",
                        goes,
                        Quantities.bytes(plan.bytes()),
                        plan.stays().isEmpty()
                                ? ""
                                : (yes ? "; stays: " : "; would stay: ")
                                        + String.join(", ", plan.stays()))
                .replaceAll("\\p{Cntrl}", "?");
    }

    private void say(String line) {
        if (!json) {
            out().println(line);
        }
    }

    private void warn(String line) {
        err().println("penstock: " + line);
        err().flush();
    }
}
