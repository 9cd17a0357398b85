package dev.penstock.runtime.cli;

import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.config.LoadedConfig;
import dev.penstock.runtime.config.RunConfig;
import dev.penstock.runtime.launch.Interrupts;
import dev.penstock.runtime.launch.PipelineRun;
import dev.penstock.runtime.launch.RunAssembly;
import dev.penstock.runtime.launch.RunOptions;
import dev.penstock.runtime.metrics.ListenerFanOut;
import dev.penstock.runtime.metrics.MetricsWriter;
import dev.penstock.runtime.metrics.PipelineMeter;
import dev.penstock.runtime.metrics.ProgressListener;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.report.RunEnding;
import dev.penstock.runtime.report.RunFacts;
import dev.penstock.runtime.report.RunRecorder;
import dev.penstock.runtime.report.RunReport;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.InstantSource;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** One training run, from its directory to its report. */
final class TrainRun {
    /** What was asked for. */
    record Request(
            LoadedConfig loaded,
            Optional<Path> runDirectory,
            boolean resume,
            Optional<Path> init,
            Optional<RunOptions.DumpRequest> dump) {}

    private final Request request;
    private final RunConfig config;
    private final PrintWriter out;
    private final PrintWriter err;

    TrainRun(Request request, PrintWriter out, PrintWriter err) {
        this.request = request;
        this.config = request.loaded().config();
        this.out = out;
        this.err = err;
    }

    /** Trains; returns the exit code. */
    int call() {
        RunDirectory directory = directory();
        Interrupts interrupts = Interrupts.install();
        interrupts.onInterrupt(() -> leave(directory));
        try (FileChannel _ = directory.lock();
                RunAssembly assembly = assemble(directory);
                RunLog _ = RunLog.to(directory.log())) {
            return train(directory, assembly, interrupts);
        } catch (IOException e) {
            throw new UncheckedIOException("cannot give up the lock of " + directory.path(), e);
        }
    }

    /** An interrupt before there is a run to save. */
    private void leave(RunDirectory directory) {
        if (!request.resume()) {
            directory.removeIfEmpty();
        }
        Runtime.getRuntime().exit(ExitCode.INTERRUPTED);
    }

    private RunDirectory directory() {
        if (!request.resume()) {
            return request.runDirectory()
                    .map(RunDirectory::create)
                    .orElseGet(
                            () ->
                                    RunDirectory.createUnder(
                                            config.run().directory(), config.run().name()));
        }
        return request.runDirectory()
                .map(RunDirectory::open)
                .or(() -> RunDirectory.latestUnder(config.run().directory(), config.run().name()))
                .orElseThrow(
                        () ->
                                new BadInputException(
                                        "--resume: expected a run named %s below %s, got none; name its directory with --run-dir"
                                                .formatted(
                                                        config.run().name(),
                                                        config.run().directory())));
    }

    private RunAssembly assemble(RunDirectory directory) {
        try {
            Optional<Path> checkpoint =
                    request.resume()
                            ? Optional.of(
                                    CheckpointFolders.find(directory.path(), this::warn).path())
                            : Optional.empty();
            RunAssembly assembly =
                    RunAssembly.of(
                            request.loaded(),
                            new RunOptions(
                                    RunOptions.newRunId(config.run().name()),
                                    directory.path().toAbsolutePath(),
                                    checkpoint,
                                    request.init().map(Path::toAbsolutePath),
                                    request.dump(),
                                    false));
            Files.writeString(directory.resolvedConfiguration(), config.resolved());
            return assembly;
        } catch (IOException e) {
            throw new UncheckedIOException(
                    "cannot write " + directory.resolvedConfiguration() + ": " + e.getMessage(), e);
        } catch (RuntimeException e) {
            if (!request.resume()) {
                directory.removeIfEmpty();
            }
            throw e;
        }
    }

    private int train(RunDirectory directory, RunAssembly assembly, Interrupts interrupts) {
        var steps = assembly.plan().steps();
        var meter = new PipelineMeter(assembly.plan().training());
        var recorder =
                new RunRecorder(
                        config.report().traceSteps().isEmpty()
                                ? RunRecorder.defaultSteps(steps.completed(), steps.last())
                                : config.report().traceSteps().stream()
                                        .map(Integer::longValue)
                                        .toList());
        long tokensPerStep = assembly.model().batch().tokensPerStep();
        long start = System.nanoTime();
        RunBanner.print(out, assembly, directory);
        RunOutcome outcome;
        try (var metrics =
                        new MetricsWriter(
                                directory.metrics(),
                                steps.completed(),
                                meter,
                                tokensPerStep,
                                assembly.model().optimizer().learningRate()::at,
                                InstantSource.system());
                var progress =
                        ProgressListener.of(
                                System.out,
                                Terminal.isTerminal(),
                                0,
                                config.run().name(),
                                steps.completed(),
                                steps.last(),
                                tokensPerStep,
                                meter)) {
            assembly.sweepCheckpoints();
            var listener = new ListenerFanOut(List.of(metrics, recorder, progress));
            outcome = new PipelineRun(assembly, listener, interrupts::onInterrupt).run();
        }
        assembly.close(); // the sample is read from the last checkpoint
        assembly.mergeGradientDump();
        return finish(directory, assembly, recorder, outcome, System.nanoTime() - start);
    }

    private int finish(
            RunDirectory directory,
            RunAssembly assembly,
            RunRecorder recorder,
            RunOutcome outcome,
            long nanos) {
        Optional<String> sample =
                outcome instanceof RunOutcome.Failed ? Optional.empty() : sample(assembly);
        sample.ifPresent(text -> out.printf("%nA sample of what it writes now:%n%s%n", text));
        String summary =
                new RunReport(directory, facts(assembly), recorder)
                        .write(new RunEnding(outcome, Duration.ofNanos(nanos), sample));
        out.printf("%n%s%n", summary);
        out.flush();
        return switch (outcome) {
            case RunOutcome.Completed _ -> ExitCode.OK;
            case RunOutcome.Interrupted _ -> ExitCode.INTERRUPTED;
            case RunOutcome.Failed(_, String reason) -> {
                err.println("penstock: " + reason);
                yield ExitCode.FAILURE;
            }
        };
    }

    /** What fails here must not cost the report. */
    private Optional<String> sample(RunAssembly assembly) {
        try {
            return SampleText.write(assembly, this::warn);
        } catch (RuntimeException e) {
            warn("no sample of the model's text: " + e.getMessage());
            return Optional.empty();
        }
    }

    private static RunFacts facts(RunAssembly assembly) {
        Map<String, String> environment = new LinkedHashMap<>();
        environment.put(
                "host",
                "%s %s, %d processors"
                        .formatted(
                                System.getProperty("os.name"),
                                System.getProperty("os.arch"),
                                Runtime.getRuntime().availableProcessors()));
        environment.put("java", Runtime.version().toString());
        environment.put("data", assembly.data().description());
        return new RunFacts(
                assembly.config().run().name(),
                assembly.config().resolved(),
                assembly.plan().training(),
                assembly.plan().steps().last(),
                assembly.model().batch().tokensPerStep(),
                assembly.model().shape().parameters(),
                assembly.plannedBytes(),
                environment);
    }

    private void warn(String line) {
        err.println("penstock: " + line);
        err.flush();
    }
}
