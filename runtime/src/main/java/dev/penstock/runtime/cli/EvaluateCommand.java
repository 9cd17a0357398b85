package dev.penstock.runtime.cli;

import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.config.ConfigLoader;
import dev.penstock.runtime.config.LoadedConfig;
import dev.penstock.runtime.config.RunConfig;
import dev.penstock.runtime.launch.Interrupts;
import dev.penstock.runtime.launch.PipelineRun;
import dev.penstock.runtime.launch.RunAssembly;
import dev.penstock.runtime.launch.RunOptions;
import dev.penstock.runtime.metrics.RunDirectory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Measures the held-out loss of a trained model. */
@Command(
        name = "evaluate",
        description = {
            "Measures the loss of a run's checkpoint on held-out text, in the run's own pipeline,",
            "and says it as perplexity and in bits per token."
        },
        footer = {
            "  penstock evaluate runs/quickstart-1",
            "  penstock evaluate runs/quickstart-1 --set evaluation.batches=50 --json",
            "  penstock evaluate runs/quickstart-1 --set data.source=other.txt --set data.validation-fraction=0.5",
        })
final class EvaluateCommand extends PenstockCommand {
    /** The answer for programs. */
    record Answer(
            String checkpoint,
            long step,
            int batches,
            double loss,
            double perplexity,
            double bitsPerToken) {}

    @Parameters(index = "0", paramLabel = "RUN", description = "A run directory.")
    @SuppressWarnings("NullAway.Init") // required: set by picocli
    private Path run;

    @Option(
            names = "--checkpoint",
            paramLabel = "DIR",
            description = "A checkpoint of the run; default: the newest one.")
    private @Nullable Path checkpoint;

    @Option(
            names = "--set",
            paramLabel = "KEY=VALUE",
            description = "Overrides a key of the run's configuration; may be repeated.")
    private List<String> overrides = new ArrayList<>();

    @Option(names = "--json", description = "Print one JSON document.")
    private boolean json;

    @Override
    public Integer call() {
        RunDirectory directory = RunDirectory.open(run);
        LoadedConfig loaded =
                ConfigLoader.loadWithOrigins(directory.resolvedConfiguration(), overrides);
        SavedCheckpoint saved =
                CheckpointFolders.find(
                        checkpoint == null ? directory.path() : checkpoint,
                        line -> err().println("penstock: " + line));
        OptionalDouble measured = evaluate(directory, loaded, saved);
        if (measured.isEmpty()) {
            err().println("penstock: interrupted before the loss was measured");
            return ExitCode.INTERRUPTED;
        }
        double loss = measured.getAsDouble();
        RunConfig config = loaded.config();
        var answer =
                new Answer(
                        saved.path().toString(),
                        saved.step(),
                        config.evaluation().batches(),
                        loss,
                        Math.exp(loss),
                        loss / Math.log(2));
        if (json) {
            printJson(answer);
        } else {
            out().printf(
                            "step %d: held-out loss %.4f, perplexity %.2f, %.3f bits per token (%d batches)%n",
                            answer.step(),
                            answer.loss(),
                            answer.perplexity(),
                            answer.bitsPerToken(),
                            answer.batches());
        }
        return ExitCode.OK;
    }

    /** The loss; empty if the user interrupted. */
    private OptionalDouble evaluate(
            RunDirectory directory, LoadedConfig loaded, SavedCheckpoint saved) {
        var options =
                new RunOptions(
                        RunOptions.newRunId(loaded.config().run().name()),
                        directory.path().toAbsolutePath(),
                        Optional.of(saved.path()),
                        Optional.empty(),
                        Optional.empty(),
                        true);
        var found = new LossListener();
        RunOutcome outcome;
        try (RunAssembly assembly = RunAssembly.of(loaded, options)) {
            if (!assembly.data().hasHeldOut()) {
                throw new BadInputException(
                        "evaluating: expected held-out text, got none; try --set data.validation-fraction=0.05");
            }
            outcome = new PipelineRun(assembly, found, Interrupts.install()::onInterrupt).run();
        }
        if (outcome instanceof RunOutcome.Failed(_, String reason)) {
            throw new RunFailedException(reason);
        }
        return found.loss;
    }

    /** Waits for the one number that matters. */
    private static final class LossListener implements RunListener {
        private volatile OptionalDouble loss = OptionalDouble.empty();

        @Override
        public void onEvaluation(long step, double newLoss) {
            loss = OptionalDouble.of(newLoss);
        }

        @Override
        public void onStep(StepReport report) {}

        @Override
        public void onCheckpoint(long step, long bytes, long nanos) {}

        @Override
        public void onCheckpointFailed(long step, String reason) {}

        @Override
        public void onStall(String report) {}
    }
}
