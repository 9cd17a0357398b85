package dev.penstock.runtime.launch;

import akka.actor.typed.ActorSystem;
import dev.penstock.actors.fault.ProcessHarm;
import dev.penstock.actors.journal.JournalFile;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.supervisor.PipelineSupervisor;
import dev.penstock.actors.supervisor.PipelineSupervisor.Command;
import dev.penstock.actors.supervisor.RunBeginning;
import dev.penstock.actors.supervisor.SupervisorServices;
import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.RunLog;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.DraftConfig;
import dev.penstock.runtime.metrics.RunDirectory;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/**
 * Trains as {@code train} does with {@code pipeline.processes = per-stage}, except that the stage
 * processes are {@link HostedProcess}es. Supervisor, nodes, ranks, journal, checkpoints and the
 * data plane are the real ones; so recovery is, which is what this is for. A real process costs
 * seconds of processor time, one of these a fraction of a second.
 *
 * <p>What only real processes show is left to tests with real ones: that a killed process is
 * noticed, that its replacement starts, what becomes of messages between processes, and a process
 * that is suspended as a whole.
 */
public final class RanksInOneJvm {
    private static final Duration LIMIT = Duration.ofMinutes(2);

    private final Training training;
    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    private RanksInOneJvm(Training training) {
        this.training = training;
    }

    /** Runs a training of stage processes, whatever comes of it. */
    public static Trained run(Training training) {
        return new RanksInOneJvm(training.copy().set("pipeline.processes=per-stage")).run();
    }

    /** Runs a training of stage processes to a good end. */
    public static Trained complete(Training training) {
        Trained trained = run(training);
        if (trained.exitCode() != ExitCode.OK) {
            throw new AssertionError(
                    "%s ended with %d: %s".formatted(training, trained.exitCode(), trained.err()));
        }
        return trained;
    }

    private Trained run() {
        DraftConfig draft = ConfigLoader.draft(training.configuration(), training.settings());
        RunDirectory directory =
                training.isResumed()
                        ? RunDirectory.open(training.directory())
                        : RunDirectory.create(training.directory());
        RunStart start = start(directory.path());
        RunParts parts = RunParts.prepare(draft, start, List.of());
        RunOptions options = start.in(directory.path(), parts.config().run().name());
        try (RunAssembly assembly = new RunAssembly(parts, options, new Immortal());
                RunLog _ = RunLog.to(directory.log())) {
            Files.createDirectories(directory.checkpoints());
            Files.writeString(directory.resolvedConfiguration(), parts.config().resolved());
            assembly.writeForStageProcesses();
            return new Trained(directory.path(), record(assembly, directory), "" + out, "" + err);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private RunStart start(Path directory) {
        Optional<Path> checkpoint =
                training.isResumed()
                        ? CheckpointFolders.newestOf(directory, err::write)
                                .map(SavedCheckpoint::path)
                        : Optional.empty();
        return new RunStart(checkpoint, training.weights(), Optional.empty(), false);
    }

    private int record(RunAssembly assembly, RunDirectory directory) {
        long begun = System.nanoTime();
        try (var record = new RunRecord(assembly, directory, false)) {
            record.banner().forEach(line -> out.write(line + "\n"));
            assembly.sweepCheckpoints();
            RunOutcome outcome = supervise(assembly, record.listener(new RunListener() {}));
            assembly.close();
            var took = Duration.ofNanos(System.nanoTime() - begun);
            out.write(record.report(outcome, took, Optional.empty()));
            return ExitCode.of(outcome, new PrintWriter(err, true));
        }
    }

    /** As {@link PipelineRun} does with real processes. */
    private static RunOutcome supervise(RunAssembly assembly, RunListener listener) {
        var outcome = new CompletableFuture<RunOutcome>();
        Path directory = assembly.options().directory();
        RunBeginning beginning = EarlierStarts.in(directory).next();
        try (var processes = new HostedProcesses(assembly);
                var journal = JournalFile.open(directory.resolve(JournalFile.NAME))) {
            var services =
                    new SupervisorServices(
                            assembly.checkpoints(),
                            assembly.recoveryPolicy(),
                            journal,
                            processes,
                            processes,
                            assembly.reaction(),
                            assembly.degradedPlans());
            ActorSystem<Command> system =
                    ActorSystems.local(
                            PipelineSupervisor.create(
                                    assembly.plan(), listener, services, beginning, outcome));
            try {
                processes.begin(system);
                var _ =
                        outcome.completeOnTimeout(
                                new RunOutcome.Failed(0, "the run did not end within " + LIMIT),
                                LIMIT.toMillis(),
                                TimeUnit.MILLISECONDS);
                return SupervisorSystem.await(system, outcome, _ -> {});
            } finally {
                processes.end();
                SupervisorSystem.terminate(system);
                requireEnded(system);
            }
        }
    }

    private static void requireEnded(ActorSystem<Command> system) {
        if (!system.getWhenTerminated().toCompletableFuture().isDone()) {
            var threads = new StringBuilder("actors of a run did not end:\n");
            Thread.getAllStackTraces()
                    .forEach(
                            (thread, stack) ->
                                    threads.append(thread)
                                            .append(' ')
                                            .append(List.of(stack))
                                            .append('\n'));
            throw new AssertionError(threads);
        }
    }

    /** The supervisor's process is the test's. */
    private static final class Immortal implements ProcessHarm {
        @Override
        public void kill() {
            throw new UnsupportedOperationException("the supervisor of a test does not die");
        }

        @Override
        public void pause(Duration length) {
            throw new UnsupportedOperationException("the supervisor of a test does not pause");
        }
    }
}
