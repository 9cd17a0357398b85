package dev.penstock.runtime.cli.train;

import com.typesafe.config.ConfigUtil;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.checkpoint.HeldCheckpoint;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.cli.command.RunFailedException;
import dev.penstock.runtime.cli.command.TemporaryFolder;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.DraftConfig;
import dev.penstock.runtime.config.run.ExposedDataPlane;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.launch.Interrupts;
import dev.penstock.runtime.launch.PipelineRun;
import dev.penstock.runtime.launch.RunAssembly;
import dev.penstock.runtime.launch.RunParts;
import dev.penstock.runtime.launch.RunStart;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.safetensors.StoredFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Measures the loss of a trained model. */
@Command(
        name = "evaluate",
        description = {
            "Measures the loss of a run's checkpoint on held-out text, or on a file.",
            "It runs in the run's own pipeline; the loss is also said as perplexity, in bits per"
                    + " token and in bits per byte."
        },
        footer = {
            "  penstock evaluate runs/quickstart-1",
            "  penstock evaluate runs/quickstart-1 --data other.txt --json",
            "  penstock evaluate runs/quickstart-1 --set evaluation.batches=50 \\",
            "      --set pipeline.stages=1",
        })
public final class EvaluateCommand extends PenstockCommand {
    /** More batches than there are: all are measured. */
    private static final int WHOLE_FILE = 1_000_000_000;

    /**
     * The answer for programs.
     *
     * @param tokens whose loss was measured
     * @param bytes that these tokens stand for
     */
    record Answer(
            String checkpoint,
            long step,
            int batches,
            long tokens,
            long bytes,
            double loss,
            double perplexity,
            double bitsPerToken,
            double bitsPerByte) {}

    @Parameters(index = "0", paramLabel = "RUN", description = "A run directory.")
    @SuppressWarnings("NullAway.Init") // required: set by picocli
    private Path run;

    @Option(
            names = "--checkpoint",
            paramLabel = "DIR",
            description = "A checkpoint of the run; default: the newest one.")
    private @Nullable Path checkpoint;

    @Option(
            names = "--data",
            paramLabel = "FILE",
            description =
                    "A file, folder or glob of text (.jsonl: JSON lines; .parquet), to be measured to"
                            + " its end; default: what the run held out, as far as evaluation.batches"
                            + " say.")
    private @Nullable String data;

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
        DraftConfig draft = ConfigLoader.draft(directory.resolvedConfiguration(), allOverrides());
        List<Problem> problems = new ArrayList<>();
        ExposedDataPlane.ofLocalRun(draft.draft()).ifPresent(problems::add);
        Optional<SavedCheckpoint> saved = checkpoint(directory, problems);
        try (HeldCheckpoint held = saved.map(HeldCheckpoint::of).orElse(null)) {
            Optional<Path> read = Optional.ofNullable(held).map(HeldCheckpoint::path);
            RunStart start = RunStart.evaluationOf(read);
            RunParts parts = RunParts.prepare(draft, start, problems);
            OptionalDouble measured = evaluate(parts, start);
            if (measured.isEmpty()) {
                err().println("penstock: interrupted before the loss was measured");
                return ExitCode.INTERRUPTED;
            }
            print(answer(saved.orElseThrow(), parts, measured.getAsDouble()));
            return ExitCode.OK;
        }
    }

    /** Of a file all is held out, and read once; what the user sets wins. */
    private List<String> allOverrides() {
        List<String> all = new ArrayList<>();
        if (data != null) {
            String quoted = ConfigUtil.quoteString(Path.of(data).toAbsolutePath().toString());
            boolean lines = data.endsWith(".jsonl") || data.endsWith(".jsonl.gz");
            String format = lines ? "jsonl" : data.endsWith(".parquet") ? "parquet" : "text";
            all.add("data.source=" + quoted);
            all.add("data.format=" + format);
            all.add("data.validation-fraction=1");
            all.add("batch.last=smaller");
            all.add("evaluation.batches=" + WHOLE_FILE);
        }
        all.addAll(overrides);
        return all;
    }

    private static Answer answer(SavedCheckpoint saved, RunParts parts, double loss) {
        RunConfig config = parts.config();
        int batches = Math.min(config.evaluation().batches(), parts.data().heldOutBatches());
        int full = config.batch().sequences();
        long sequences =
                (batches - 1L) * full
                        + parts.data().sequences(StepKind.EVALUATE, batches - 1L, full);
        long tokens = sequences * config.model().context();
        long bytes = parts.data().heldOutBytes(sequences);
        return new Answer(
                saved.path().toString(),
                saved.step(),
                batches,
                tokens,
                bytes,
                loss,
                Math.exp(loss),
                loss / Math.log(2),
                loss * tokens / (Math.log(2) * bytes));
    }

    private void print(Answer answer) {
        if (json) {
            printJson(answer);
        } else {
            out().printf(
                            "step %d: %s loss %.4f, perplexity %.2f, %.3f bits per token, %.3f bits"
                                    + " per byte (%d tokens, %d bytes, %d batches)%n",
                            answer.step(),
                            data == null ? "held-out" : data,
                            answer.loss(),
                            answer.perplexity(),
                            answer.bitsPerToken(),
                            answer.bitsPerByte(),
                            answer.tokens(),
                            answer.bytes(),
                            answer.batches());
        }
    }

    private Optional<SavedCheckpoint> checkpoint(RunDirectory directory, List<Problem> problems) {
        try {
            return Optional.of(
                    CheckpointFolders.find(
                            checkpoint == null ? directory.path() : checkpoint,
                            line -> err().println("penstock: " + line)));
        } catch (StoredFileException e) {
            problems.add(
                    Problem.atOption(
                            checkpoint == null ? "RUN" : "--checkpoint",
                            "a whole checkpoint",
                            String.valueOf(e.getMessage()),
                            ""));
            return Optional.empty();
        }
    }

    /**
     * The loss; empty if the user interrupted. What processes need to start is not written into the
     * run's directory: the run may be under way, and start processes of its own from there.
     */
    private static OptionalDouble evaluate(RunParts parts, RunStart start) {
        var found = new LossListener();
        String name = parts.config().run().name();
        RunOutcome outcome;
        try (var own = TemporaryFolder.make("penstock-evaluation-");
                var assembly = new RunAssembly(parts, start.in(own.path(), name))) {
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
    }
}
