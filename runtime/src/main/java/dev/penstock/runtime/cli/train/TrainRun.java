package dev.penstock.runtime.cli.train;

import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.Terminal;
import dev.penstock.runtime.inference.TrainingTasks;
import dev.penstock.runtime.launch.ConfiguredRecovery;
import dev.penstock.runtime.launch.Interrupts;
import dev.penstock.runtime.launch.PipelineRun;
import dev.penstock.runtime.launch.RunAssembly;
import dev.penstock.runtime.launch.RunRecord;
import dev.penstock.runtime.metrics.ListenerFanOut;
import dev.penstock.runtime.metrics.ProgressListener;
import dev.penstock.runtime.metrics.Quantities;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.training.NotFiniteStart;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.List;
import java.util.Optional;

/** One training run, from its first line to its report. */
final class TrainRun {
    private static final String HEARD =
            "penstock: finishing this step and saving; press Ctrl-C again to stop now";

    private final RunDirectory directory;
    private final RunAssembly assembly;
    private final Interrupts interrupts;
    private final String again;
    private final PrintWriter out;
    private final PrintWriter err;

    /**
     * @param again the command that goes on with the run
     */
    TrainRun(
            RunDirectory directory,
            RunAssembly assembly,
            Interrupts interrupts,
            String again,
            PrintWriter out,
            PrintWriter err) {
        this.directory = directory;
        this.assembly = assembly;
        this.interrupts = interrupts;
        this.again = again;
        this.out = out;
        this.err = err;
    }

    /** Trains; returns the exit code. */
    int call() {
        var steps = assembly.plan().steps();
        long start = System.nanoTime();
        try (var record = new RunRecord(assembly, directory, false)) {
            record.banner().forEach(out::println);
            ConfiguredRecovery.mirrorNote(assembly.config())
                    .ifPresent(note -> out.println("note: " + note));
            beginning().ifPresent(out::println);
            out.flush();
            RunOutcome outcome;
            try (var progress =
                    ProgressListener.of(
                            out,
                            Terminal.screen(),
                            0,
                            assembly.config().run().name(),
                            steps.completed(),
                            steps.last(),
                            record.tokens(),
                            record.meter())) {
                assembly.sweepCheckpoints();
                outcome =
                        new PipelineRun(
                                        assembly,
                                        record.listener(
                                                new ListenerFanOut(
                                                        List.of(
                                                                progress,
                                                                new TrainingTasks(
                                                                        assembly,
                                                                        record::onTask)))),
                                        action -> interrupts.onInterrupt(() -> end(action)))
                                .run();
            }
            assembly.close(); // the sample is read from the last checkpoint
            assembly.mergeGradientDump();
            return finish(record, explained(outcome), Duration.ofNanos(System.nanoTime() - start));
        }
    }

    /** Where the run goes on, or which weights it starts with; empty of a fresh model. */
    private Optional<String> beginning() {
        var steps = assembly.plan().steps();
        if (assembly.options().resume().isPresent()) {
            return Optional.of(
                    steps.completed() < steps.last()
                            ? "resumes after step %d of %d, from %s"
                                    .formatted(
                                            steps.completed(),
                                            steps.last(),
                                            assembly.options().resume().get())
                            : "nothing left to do: %d of %d steps; --set run.steps=%d goes on"
                                    .formatted(
                                            steps.completed(),
                                            steps.last(),
                                            2 * steps.completed()));
        }
        return assembly.options()
                .init()
                .map(
                        weights ->
                                "starts with the weights of %s: %s parameters"
                                        .formatted(
                                                weights,
                                                Quantities.count(
                                                        assembly.model().shape().parameters())));
    }

    private RunOutcome explained(RunOutcome outcome) {
        return assembly.options().resume().isPresent()
                ? outcome
                : assembly.options()
                        .init()
                        .map(init -> NotFiniteStart.explained(outcome, init, assembly.config()))
                        .orElse(outcome);
    }

    private void end(Runnable action) {
        // a bar is on the line that the cursor is on
        err.println(Terminal.canDraw() ? System.lineSeparator() + HEARD : HEARD);
        err.flush();
        action.run();
    }

    private int finish(RunRecord record, RunOutcome outcome, Duration took) {
        Optional<String> sample =
                outcome instanceof RunOutcome.Failed || !assembly.config().report().sample()
                        ? Optional.empty()
                        : sample();
        sample.ifPresent(text -> out.printf("%nA sample of what it writes now:%n%s%n", text));
        out.printf("%n%s%n", record.report(outcome, took, sample));
        if (outcome instanceof RunOutcome.Interrupted(long step)) {
            boolean saved = step > 0 && record.unsaved().isEmpty();
            out.printf(
                    "%sto go on:%n  %s%n",
                    saved ? "saved after step %d; ".formatted(step) : "", again);
        }
        out.flush();
        return exitCode(record, outcome);
    }

    /** A script must notice that the last steps are in no checkpoint. */
    private int exitCode(RunRecord record, RunOutcome outcome) {
        int code = ExitCode.of(outcome, err);
        if (code == ExitCode.FAILURE || record.unsaved().isEmpty()) {
            return code;
        }
        warn("NOT SAVED: " + record.unsaved().get());
        return ExitCode.FAILURE;
    }

    /** What fails here must not cost the report. */
    private Optional<String> sample() {
        if (assembly.config().device().swap().isPresent()) {
            warn(
                    "no sample of the model's text, for which all of the model would have to be in memory (device.swap); penstock generate writes one where it has room, report.sample = false asks for none");
            return Optional.empty();
        }
        try {
            return SampleText.write(assembly, this::warn);
        } catch (RuntimeException e) {
            warn("no sample of the model's text: " + e.getMessage());
            return Optional.empty();
        }
    }

    private void warn(String line) {
        err.println("penstock: " + line);
        err.flush();
    }
}
