package dev.penstock.runtime.launch;

import dev.penstock.runtime.checkpoint.CheckpointReader;
import dev.penstock.runtime.checkpoint.Gpt2Config;
import dev.penstock.runtime.checkpoint.HuggingFaceWeights;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.model.ParameterSource;
import java.nio.file.Path;

/**
 * Where a run begins.
 *
 * @param completedSteps training steps already done
 * @param parameters first values; what it lacks starts from its default
 */
record StartingPoint(long completedSteps, ParameterSource parameters) {

    /**
     * A checkpoint to go on from, weights to start from, or a fresh model.
     *
     * @throws dev.penstock.runtime.checkpoint.CheckpointException if what is there does not fit the
     *     model, naming every difference
     */
    static StartingPoint of(RunOptions options, Gpt2Config model) {
        if (options.resume().isPresent()) {
            SavedCheckpoint saved = SavedCheckpoint.open(options.resume().get());
            CheckpointReader reader = saved.read();
            reader.requireState(model);
            return new StartingPoint(saved.step(), reader::fill);
        }
        return options.init()
                .map(path -> new StartingPoint(0, weights(path, model)))
                .orElseGet(() -> new StartingPoint(0, ParameterSource.none()));
    }

    private static ParameterSource weights(Path path, Gpt2Config model) {
        HuggingFaceWeights weights = HuggingFaceWeights.open(path);
        weights.requireParameters(model);
        return weights::fill;
    }
}
