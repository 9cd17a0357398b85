package dev.penstock.runtime.cli.train;

import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.runtime.chaos.ChaosRun;
import dev.penstock.runtime.chaos.ChaosVerdict;
import dev.penstock.runtime.chaos.FaultRow;
import dev.penstock.runtime.chaos.OwnModel;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.cli.command.RunLog;
import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.RunSection;
import dev.penstock.runtime.launch.Interrupts;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.report.FaultOutcome;
import dev.penstock.runtime.runs.TemporaryFolder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Trains under a random schedule of faults and proves that they changed nothing. */
@Command(
        name = "chaos",
        description = {
            "Trains once without and once under a random schedule of faults, and verifies that the"
                    + " faults changed nothing.",
            "Without a configuration, a small model is trained in a cluster of two seeds and three"
                    + " workers on this machine, in about two minutes. Its nodes are struck from"
                    + " outside as well: they and media drivers are killed, connections are reset"
                    + " and cut, a seed's disk and shared memory fill, bits of checkpoints flip.",
            "I1: the committed losses are equal bit for bit. I2: each (step, micro-batch, slice)"
                    + " gradient is applied exactly once. Exits with 0 only if both hold.",
            "Faults are of the kinds that the configuration's processes survive; entries of its own"
                    + " list fault are left out."
        },
        footer = {
            "  penstock chaos",
            "  penstock chaos sample-configs/per-stage-processes.conf --seed 42 \\",
            "      --faults 20 --set run.steps=100 --set checkpoint.every=10",
        })
public final class ChaosCommand extends PenstockCommand {
    private static final int SHOWN = 10;
    private static final int USUAL = 20;
    private static final int IN_CLUSTER = 10;

    /** The answer for programs. */
    record Answer(
            boolean holds,
            long seed,
            long steps,
            long stepsDoneAgain,
            List<Row> faults,
            String ending,
            List<String> lossDifferences,
            List<String> applicationFaults,
            String command) {}

    /** What became of one fault; times in milliseconds, null where there was no recovery. */
    record Row(
            String fault,
            String outcome,
            @Nullable String time,
            @Nullable Double detectMillis,
            @Nullable Double resumeMillis,
            @Nullable Long stepsLost) {}

    @Parameters(
            index = "0",
            arity = "0..1",
            paramLabel = "CONFIG",
            description = "A file such as sample-configs/quickstart.conf; default: a small model.")
    private @Nullable Path file;

    @Option(
            names = "--set",
            paramLabel = "KEY=VALUE",
            description = "Overrides a key of the configuration; may be repeated.")
    private List<String> overrides = new ArrayList<>();

    @Option(
            names = "--in-cluster",
            description = "Train a given configuration in such a cluster as well.")
    private boolean inCluster;

    @Option(
            names = "--seed",
            paramLabel = "N",
            description = "Decides the faults; default: one of its own, which is printed.")
    private @Nullable Long seed;

    @Option(
            names = "--faults",
            paramLabel = "N",
            description = "How many; default: 20, and 10 in a cluster.")
    private @Nullable Integer faults;

    @Option(
            names = "--run-dir",
            paramLabel = "DIR",
            description = "Where both runs' files go; default: a new directory.")
    private @Nullable Path runDirectory;

    @Option(names = "--json", description = "Print one JSON document.")
    private boolean json;

    @Override
    public Integer call() {
        boolean cluster = inCluster || file == null;
        int count = faults == null ? cluster ? IN_CLUSTER : USUAL : faults;
        if (count < 1) {
            throw new BadInputException("--faults: expected at least 1, got " + count);
        }
        long drawn = seed == null ? System.nanoTime() % 1_000_000 : seed;
        Path given = file;
        Path directory = given == null ? ownDirectory() : directory(read(given));
        Path configuration = given == null ? OwnModel.write(directory) : given;
        List<String> words = new ArrayList<>();
        if (given != null) {
            words.add(given.toString());
        }
        if (inCluster) {
            words.add("--in-cluster");
        }
        var run = new ChaosRun(configuration, overrides, drawn, count, words, cluster);
        Interrupts interrupts = Interrupts.install();
        say("chaos: seed %d, %d faults, files in %s".formatted(drawn, count, directory));
        ChaosVerdict verdict;
        try (RunLog _ = RunLog.to(directory.resolve("log.txt"))) {
            verdict = run.run(directory, new Progress(), interrupts::onInterrupt);
        }
        if (json) {
            printJson(answer(verdict));
        } else {
            print(verdict);
        }
        if (verdict.interrupted()) {
            return ExitCode.INTERRUPTED; // nothing was found to be wrong
        }
        return verdict.holds() ? ExitCode.OK : ExitCode.FAILURE;
    }

    private RunSection read(Path configuration) {
        return ConfigLoader.draft(configuration, overrides).orThrow().config().run();
    }

    /** Which is made only when what is set is right. */
    private Path ownDirectory() {
        try (var folder = TemporaryFolder.make("penstock-chaos-")) {
            return directory(read(OwnModel.write(folder.path())));
        }
    }

    private Path directory(RunSection section) {
        return Optional.ofNullable(runDirectory)
                .map(RunDirectory::create)
                .orElseGet(
                        () ->
                                RunDirectory.createUnder(
                                        section.directory(), section.name() + "-chaos"))
                .path();
    }

    private void print(ChaosVerdict verdict) {
        out().println();
        if (!verdict.faults().isEmpty()) {
            List<List<String>> rows = new ArrayList<>();
            rows.add(List.of("fault", "outcome", "detected", "resumed", "steps lost"));
            verdict.faults().forEach(fault -> rows.add(cells(fault)));
            out().print(aligned(rows));
            out().println();
        }
        invariant(
                "I1",
                verdict,
                verdict.lossDifferences(),
                "the losses of %d steps are equal bit for bit".formatted(verdict.steps()));
        invariant(
                "I2",
                verdict,
                verdict.applicationFaults(),
                "each gradient of %d steps was applied exactly once".formatted(verdict.steps()));
        if (verdict.stepsDoneAgain() > 0) {
            out().printf(
                            "%d %s done again%n",
                            verdict.stepsDoneAgain(),
                            verdict.stepsDoneAgain() == 1 ? "step was" : "steps were");
        }
        if (!verdict.holds()) {
            if (!verdict.ending().isEmpty()) {
                out().println(verdict.ending());
            }
            out().printf("seed %d; again: %s%n", verdict.seed(), verdict.command());
        }
        out().flush();
    }

    private void invariant(
            String name, ChaosVerdict verdict, List<String> violations, String told) {
        if (!verdict.ending().isEmpty()) {
            out().printf("%s: not known, for a training did not come to its end%n", name);
        } else if (violations.isEmpty()) {
            out().printf("%s holds: %s%n", name, told);
        } else {
            out().printf("%s is BROKEN in %d places:%n", name, violations.size());
            violations.stream().limit(SHOWN).forEach(line -> out().println("  " + line));
        }
    }

    private static List<String> cells(FaultRow fault) {
        return List.of(
                fault.fault(),
                fault.outcome(),
                fault.recovery().map(r -> "%.3f s".formatted(r.detectMillis() / 1e3)).orElse("-"),
                fault.recovery().map(r -> "%.3f s".formatted(r.resumeMillis() / 1e3)).orElse("-"),
                fault.recovery().map(r -> "" + r.stepsLost()).orElse("-"));
    }

    private static String aligned(List<List<String>> rows) {
        var text = new StringBuilder();
        for (List<String> row : rows) {
            var line = new StringBuilder();
            for (int column = 0; column < row.size(); column++) {
                int at = column;
                int width = rows.stream().mapToInt(each -> each.get(at).length()).max().orElse(0);
                String cell = row.get(column);
                line.append(cell).append(" ".repeat(width + 2 - cell.length()));
            }
            text.append(line.toString().stripTrailing()).append(System.lineSeparator());
        }
        return text.toString();
    }

    private static Answer answer(ChaosVerdict verdict) {
        return new Answer(
                verdict.holds(),
                verdict.seed(),
                verdict.steps(),
                verdict.stepsDoneAgain(),
                verdict.faults().stream().map(ChaosCommand::row).toList(),
                verdict.ending(),
                verdict.lossDifferences(),
                verdict.applicationFaults(),
                verdict.command());
    }

    private static Row row(FaultRow outcome) {
        return new Row(
                outcome.fault(),
                outcome.outcome(),
                outcome.fired().map(Object::toString).orElse(null),
                outcome.recovery().map(FaultOutcome.Recovered::detectMillis).orElse(null),
                outcome.recovery().map(FaultOutcome.Recovered::resumeMillis).orElse(null),
                outcome.recovery().map(FaultOutcome.Recovered::stepsLost).orElse(null));
    }

    private void say(String line) {
        err().println(line);
        err().flush();
    }

    /** A line now and then, beside the answer. */
    private final class Progress implements ChaosRun.Watcher {
        @Override
        public void drawn(List<String> drawn) {
            drawn.forEach(fault -> say("  " + fault));
        }

        @Override
        public void struck(String told) {
            say("  " + told);
        }

        @Override
        public RunListener training(String name, long steps) {
            say("training " + name);
            long every = Math.max(1, steps / 10);
            return new RunListener() {
                @Override
                public void onStep(StepReport report) {
                    if (report.step() % every == 0) {
                        say("  step %d of %d".formatted(report.step(), steps));
                    }
                }

                @Override
                public void onCheckpointFailed(long step, String reason) {
                    say("  checkpoint of step %d failed: %s".formatted(step, reason));
                }

                @Override
                public void onStall(String report) {
                    say(report);
                }

                @Override
                public void onRecovery(RecoveryReport report) {
                    say("  recovered: " + firstLine(report.cause()));
                }
            };
        }
    }

    /** A cause may end with what a process said last: that is in the log. */
    private static String firstLine(String text) {
        return text.lines().findFirst().orElse("");
    }
}
