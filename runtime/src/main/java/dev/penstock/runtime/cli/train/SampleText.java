package dev.penstock.runtime.cli.train;

import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.checkpoint.ModelTensors;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.inference.InferenceRequest;
import dev.penstock.runtime.inference.PipelineInference;
import dev.penstock.runtime.launch.RunAssembly;
import dev.penstock.runtime.model.generation.Sampling;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.regex.Pattern;

/** A few words of a model that was just trained. */
final class SampleText {
    private static final int PROMPT_TOKENS = 32;
    private static final int TOKENS = 200;
    private static final double TEMPERATURE = 0.8;
    private static final int TOP_K = 40;

    /** A model that knows little writes any byte, and a terminal obeys some of them. */
    private static final Pattern CONTROLS = Pattern.compile("[\\p{Cntrl}&&[^\n\t]]");

    private SampleText() {}

    /**
     * Continues the start of the held-out text from the newest checkpoint; empty if there is none,
     * or the model does not predict the next token.
     */
    static Optional<String> write(RunAssembly assembly, Consumer<String> warn) {
        Optional<SavedCheckpoint> checkpoint =
                CheckpointFolders.latest(
                        assembly.options().directory().resolve(CheckpointFolders.FOLDER), warn);
        if (checkpoint.isEmpty()
                || assembly.model().shape().block().encoder() != null
                || !assembly.data().hasHeldOut()
                || !assembly.readsText()) {
            return Optional.empty();
        }
        int[] prompt = prompt(assembly);
        try (ModelTensors weights = checkpoint.get().readMerged()) {
            var pipeline = PipelineInference.of(assembly, weights);
            var sampling = new Sampling(TEMPERATURE, TOP_K, 1.0, assembly.config().run().seed());
            PipelineInference.Result result =
                    pipeline.run(
                            InferenceRequest.of(List.of(prompt), TOKENS, sampling),
                            (_, _) -> true,
                            _ -> {});
            if (result.outcome() instanceof RunOutcome.Failed(_, String reason)) {
                warn.accept("no sample of the model's text: " + reason);
                return Optional.empty();
            }
            String text =
                    assembly.tokenizer().decode(prompt)
                            + assembly.tokenizer().decode(result.texts().getFirst().tokens());
            return Optional.of(CONTROLS.matcher(text).replaceAll("\uFFFD"));
        }
    }

    private static int[] prompt(RunAssembly assembly) {
        var batch = assembly.model().batch();
        int[] tokens = new int[batch.sequences() * (batch.context() + 1)];
        assembly.data().read(StepKind.EVALUATE, 0, 0, tokens);
        return Arrays.copyOf(tokens, Math.min(PROMPT_TOKENS, batch.context()));
    }
}
