package dev.penstock.runtime.training;

import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.checkpoint.HuggingFaceWeights;
import dev.penstock.runtime.checkpoint.ModelTensors;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.inference.FiniteWeights;
import dev.penstock.runtime.safetensors.StoredFileException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Pattern;

/**
 * What became of a run that began with given weights, where it failed before it had learned
 * anything because a number was not finite: no learning rate had a part in that, the weights had.
 */
public final class NotFiniteStart {
    private static final Pattern NOT_FINITE =
            Pattern.compile("not finite|the loss is (NaN|-?Infinity)");

    /** What the trainer advises, for which it is too early. */
    private static final Pattern ADVICE =
            Pattern.compile(
                    "[;:] try (a lower learning rate|recovery\\.non-finite = skip, or a lower)[^;:]*");

    /** What a run says that left its first steps out, which it counts. */
    private static final String ALL_LEFT_OUT = "nothing was applied since step 0,";

    private NotFiniteStart() {}

    /**
     * Returns the outcome with the first tensor that is not finite in its reason; the outcome
     * itself if that is another, or the weights cannot be read any more.
     *
     * @param init the weights
     */
    public static RunOutcome explained(RunOutcome outcome, Path init, RunConfig config) {
        if (!(outcome instanceof RunOutcome.Failed(long step, String reason))
                || (step > 0 && !reason.contains(ALL_LEFT_OUT))
                || !NOT_FINITE.matcher(reason).find()) {
            return outcome;
        }
        var model = config.model().config(config.data().tokenizer().vocabulary());
        try (ModelTensors weights = open(init)) {
            return new RunOutcome.Failed(
                    step,
                    "%s; the run began with the weights of %s: %s"
                            .formatted(
                                    ADVICE.matcher(reason).replaceAll(""),
                                    init,
                                    FiniteWeights.reason(weights, model.parameters().keySet())));
        } catch (StoredFileException e) {
            return outcome;
        }
    }

    private static ModelTensors open(Path init) {
        return Files.isDirectory(init) && !HuggingFaceWeights.areIn(init)
                ? CheckpointFolders.find(init, _ -> {}).read()
                : HuggingFaceWeights.open(init);
    }
}
