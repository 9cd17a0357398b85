package dev.penstock.runtime.cli.cluster;

import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.launch.LinuxVitals;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.metrics.RunKeeper;
import java.util.List;
import java.util.Optional;

/** The process that trains a run of this machine. */
final class RunProcess {
    /** A node of a cluster keeps many runs: a signal would end them all. */
    private static final String COMMAND = "train";

    private RunProcess() {}

    /**
     * Finds the process that may be asked to end a run.
     *
     * @throws ConfigException if there is no such run, or nobody trains it
     */
    static RunKeeper keeperOf(RunDirectory run) {
        if (!run.holdsRun()) {
            throw problem(
                    "the directory of a run of this machine",
                    run.path().toString(),
                    "penstock runs lists them; a cluster's runs need --cluster HOST:PORT");
        }
        return run.livingKeeper()
                .orElseThrow(
                        () ->
                                problem(
                                        "a run that a process trains",
                                        run.path() + ", which none does",
                                        "penstock train with --resume goes on with it"));
    }

    /**
     * Asks it as Ctrl-C does.
     *
     * @throws ConfigException if it is not this user's on this machine, or trains for a cluster
     */
    static void askToEnd(RunDirectory run, RunKeeper keeper) {
        if (!keeper.isHere()) {
            throw problem(
                    "a run of this machine",
                    "%s, which %s trains".formatted(run.path(), keeper.told()),
                    "stop it there");
        }
        ProcessHandle process =
                ProcessHandle.of(keeper.pid())
                        .orElseThrow(
                                () ->
                                        problem(
                                                "a run that a process trains",
                                                run.path() + ", which has just ended",
                                                "nothing is left to stop"));
        Optional<String> owner = process.info().user();
        if (!owner.equals(ProcessHandle.current().info().user())) {
            throw problem(
                    "a run of your own",
                    "%s, which %s trains for %s"
                            .formatted(run.path(), keeper.told(), owner.orElse("another user")),
                    "ask whoever started it");
        }
        if (!LinuxVitals.arguments(process).contains(COMMAND)) {
            throw problem(
                    "a run of penstock train",
                    "%s, which %s keeps for a cluster".formatted(run.path(), keeper.told()),
                    "use penstock stop %s --cluster HOST:PORT".formatted(run.path().getFileName()));
        }
        if (!process.supportsNormalTermination() || !process.destroy()) {
            throw problem(
                    "a process that can be signalled",
                    keeper.told(),
                    "press Ctrl-C where it was started");
        }
    }

    private static ConfigException problem(String expected, String got, String advice) {
        return new ConfigException(List.of(Problem.atOption("RUN", expected, got, advice)));
    }
}
