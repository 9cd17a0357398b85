package dev.penstock.runtime.cli;

import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.runtime.config.RunConfig;
import dev.penstock.runtime.launch.ConfiguredFaults;
import dev.penstock.runtime.launch.Interrupts;
import dev.penstock.runtime.launch.PipelineRun;
import dev.penstock.runtime.launch.RunAssembly;
import dev.penstock.runtime.metrics.ListenerFanOut;
import dev.penstock.runtime.metrics.MetricsWriter;
import dev.penstock.runtime.metrics.PipelineMeter;
import dev.penstock.runtime.metrics.ProgressListener;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.metrics.StragglerWatch;
import dev.penstock.runtime.report.FaultOutcome;
import dev.penstock.runtime.report.RecoveryBook;
import dev.penstock.runtime.report.RunEnding;
import dev.penstock.runtime.report.RunFacts;
import dev.penstock.runtime.report.RunRecorder;
import dev.penstock.runtime.report.RunReport;
import java.io.PrintWriter;
import java.time.Duration;
import java.time.InstantSource;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** One training run, from its first line to its report. */
final class TrainRun {
    private final RunDirectory directory;
    private final RunAssembly assembly;
    private final RunConfig config;
    private final Interrupts interrupts;
    private final RecoveryBook recoveries = new RecoveryBook(InstantSource.system());
    private final PrintWriter out;
    private final PrintWriter err;

    TrainRun(
            RunDirectory directory,
            RunAssembly assembly,
            Interrupts interrupts,
            PrintWriter out,
            PrintWriter err) {
        this.directory = directory;
        this.assembly = assembly;
        this.config = assembly.config();
        this.interrupts = interrupts;
        this.out = out;
        this.err = err;
    }

    /** Trains; returns the exit code. */
    int call() {
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
            var told = new ListenerFanOut(List.of(metrics, recorder, recoveries, progress));
            var stragglers =
                    new StragglerWatch(assembly.plan().training(), assembly.shares(), told);
            var listener = new ListenerFanOut(List.of(told, stragglers));
            outcome = new PipelineRun(assembly, listener, interrupts::onInterrupt).run();
        }
        assembly.close(); // the sample is read from the last checkpoint
        assembly.mergeGradientDump();
        return finish(recorder, outcome, System.nanoTime() - start);
    }

    private int finish(RunRecorder recorder, RunOutcome outcome, long nanos) {
        Optional<String> sample =
                outcome instanceof RunOutcome.Failed ? Optional.empty() : sample();
        sample.ifPresent(text -> out.printf("%nA sample of what it writes now:%n%s%n", text));
        String summary =
                new RunReport(directory, facts(), recorder)
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
    private Optional<String> sample() {
        try {
            return SampleText.write(assembly, this::warn);
        } catch (RuntimeException e) {
            warn("no sample of the model's text: " + e.getMessage());
            return Optional.empty();
        }
    }

    private RunFacts facts() {
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
                config.run().name(),
                config.resolved(),
                assembly.plan().training(),
                assembly.plan().steps().last(),
                assembly.model().batch().tokensPerStep(),
                assembly.model().shape().parameters(),
                assembly.plannedBytes(),
                this::faults,
                environment);
    }

    private List<FaultOutcome> faults() {
        return FaultOutcome.of(
                ConfiguredFaults.plan(config),
                ConfiguredFaults.markers(directory.path()),
                recoveries.all());
    }

    private void warn(String line) {
        err.println("penstock: " + line);
        err.flush();
    }
}
