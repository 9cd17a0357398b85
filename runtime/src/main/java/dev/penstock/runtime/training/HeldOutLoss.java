package dev.penstock.runtime.training;

import com.fasterxml.jackson.annotation.JsonInclude;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.runtime.checkpoint.CheckpointReader;
import dev.penstock.runtime.checkpoint.HeldCheckpoint;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.run.DraftConfig;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.data.GivenTokens;
import dev.penstock.runtime.inference.FiniteWeights;
import dev.penstock.runtime.launch.PipelineRun;
import dev.penstock.runtime.launch.RunAssembly;
import dev.penstock.runtime.launch.RunParts;
import dev.penstock.runtime.launch.RunStart;
import dev.penstock.runtime.runs.TemporaryFolder;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** The loss of a run's checkpoint on what the run holds out, in the run's own pipeline. */
public final class HeldOutLoss {
    private HeldOutLoss() {}

    /**
     * The answer for programs.
     *
     * @param rows that were held out and read, each once
     * @param tokens of them whose loss was measured
     * @param bytes that these tokens stand for; 0 where they stand for none, as hidden words
     * @param bitsPerByte 0 where there are no bytes
     * @param accuracy share of the texts whose class was found; null unless the model classifies
     */
    public record Answer(
            String checkpoint,
            long step,
            String task,
            String protocol,
            int batches,
            long rows,
            long tokens,
            long bytes,
            double loss,
            double perplexity,
            double bitsPerToken,
            double bitsPerByte,
            @JsonInclude(JsonInclude.Include.NON_NULL) @Nullable Double accuracy) {
        /** One line for people. */
        public String forPeople() {
            if (accuracy != null) {
                return "step %d: held-out loss %.4f, accuracy %.1f %% of %d texts"
                        .formatted(step, loss, 100 * accuracy, tokens);
            }
            if (bytes == 0) {
                return "step %d: held-out loss %.4f, perplexity %.2f, %.3f bits per token (%d tokens, %d batches) in %d rows"
                        .formatted(step, loss, perplexity, bitsPerToken, tokens, batches, rows);
            }
            return "step %d: held-out loss %.4f, perplexity %.2f, %.3f bits per token, %.3f bits per byte (%d tokens, %d bytes, %d batches) in %d rows"
                    .formatted(
                            step,
                            loss,
                            perplexity,
                            bitsPerToken,
                            bitsPerByte,
                            tokens,
                            bytes,
                            batches,
                            rows);
        }
    }

    /**
     * Measures it; empty if the user interrupted.
     *
     * @param saved empty if there is none, which the problems say
     * @param tokens of the program that asks; empty where files have them
     * @param problems found so far
     * @param onInterrupt given the action that ends it at the user's request
     * @throws dev.penstock.runtime.config.reading.ConfigException with these and all others
     * @throws RunFailedException if the pipeline fails
     */
    public static Optional<Answer> measure(
            DraftConfig draft,
            Optional<SavedCheckpoint> saved,
            Optional<GivenTokens> tokens,
            List<Problem> problems,
            Consumer<Runnable> onInterrupt) {
        try (HeldCheckpoint held = saved.map(HeldCheckpoint::of).orElse(null)) {
            Optional<Path> read = Optional.ofNullable(held).map(HeldCheckpoint::path);
            RunStart start = RunStart.evaluationOf(read).with(tokens);
            RunParts parts = RunParts.prepare(draft, start, problems);
            return measured(parts, start, saved.orElseThrow(), onInterrupt)
                    .map(measured -> answer(saved.orElseThrow(), parts, measured));
        }
    }

    private static Answer answer(SavedCheckpoint saved, RunParts parts, Measured measured) {
        double loss = measured.loss();
        RunConfig config = parts.config();
        int batches = Math.min(config.evaluation().batches(), parts.data().heldOutBatches());
        long rows = parts.data().heldOutRows(batches);
        long tokens = parts.data().heldOutTargets(rows);
        long bytes = parts.data().heldOutBytes(rows);
        return new Answer(
                saved.path().toString(),
                saved.step(),
                "text",
                "plain",
                batches,
                rows,
                tokens,
                bytes,
                loss,
                Math.exp(loss),
                loss / Math.log(2),
                bytes == 0 ? 0 : loss * tokens / (Math.log(2) * bytes),
                measured.accuracy().isEmpty() ? null : measured.accuracy().getAsDouble());
    }

    private record Measured(double loss, OptionalDouble accuracy) {}

    /**
     * The loss; empty if the user interrupted. What processes need to start is not written into the
     * run's directory: the run may be under way, and start processes of its own from there.
     */
    private static Optional<Measured> measured(
            RunParts parts, RunStart start, SavedCheckpoint saved, Consumer<Runnable> onInterrupt) {
        var found = new LossListener();
        String name = parts.config().run().name();
        RunOutcome outcome;
        try (var own = TemporaryFolder.make("penstock-evaluation-");
                var assembly = new RunAssembly(parts, start.in(own.path(), name))) {
            outcome = new PipelineRun(assembly, found, onInterrupt).run();
        }
        if (outcome instanceof RunOutcome.Failed(_, String reason)) {
            throw new RunFailedException(reason.contains("not finite") ? notFinite(saved) : reason);
        }
        Optional<Measured> measured = found.measured;
        if (measured.isPresent() && !Double.isFinite(measured.get().loss())) {
            throw new RunFailedException(notFinite(saved));
        }
        return measured;
    }

    /** A run would be told to learn more slowly; here nothing learns. */
    private static String notFinite(SavedCheckpoint saved) {
        try (CheckpointReader weights = saved.read()) {
            return "%s: the loss is not finite: %s"
                    .formatted(
                            saved.path(),
                            FiniteWeights.reason(
                                    weights, saved.manifest().model().parameters().keySet()));
        }
    }

    /** Waits for what is measured. */
    private static final class LossListener implements RunListener {
        private volatile Optional<Measured> measured = Optional.empty();

        @Override
        public void onEvaluation(long step, double loss, OptionalDouble accuracy) {
            measured = Optional.of(new Measured(loss, accuracy));
        }
    }
}
