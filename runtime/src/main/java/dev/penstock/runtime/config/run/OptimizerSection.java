package dev.penstock.runtime.config.run;

import dev.penstock.actors.precision.LossScaling;
import dev.penstock.runtime.config.reading.Setting;
import dev.penstock.runtime.model.shape.GradientSum;
import dev.penstock.runtime.model.shape.LearningRate;
import dev.penstock.runtime.model.shape.OptimizerState;
import java.util.Optional;

/**
 * Section {@code optimizer}: AdamW, and the learning rate over the steps.
 *
 * @param minLearningRate where the decay ends; empty: a tenth of {@code learningRate}
 * @param warmupSteps steps of linear rise to {@code learningRate}
 * @param schedule how the rate develops after the warm-up
 * @param decaySteps steps of the decay at the end (wsd); empty: a tenth of the run's
 * @param decayAll weight decay also for biases, gains and embeddings of positions
 * @param clipNorm largest global gradient norm; 0: no clipping
 * @param gradientSum how gradients of micro-batches are added up
 * @param state the form of the moments
 * @param lossScale what the loss is multiplied by
 * @param lossScaleInitial the first dynamic scale
 * @param lossScaleWindow steps without an overflow after which it doubles
 * @param lossScaleHysteresis the overflow from which on each one halves it
 */
public record OptimizerSection(
        @Setting(is = "6e-4", range = "(0, )", doc = "the highest learning rate")
                double learningRate,
        @Setting(
                        is = "auto",
                        word = "auto",
                        range = "[0, )",
                        doc = "the learning rate at the end; auto: a tenth of the highest")
                Optional<Double> minLearningRate,
        @Setting(is = "50", range = "[0, )", doc = "steps of linear rise at the start")
                int warmupSteps,
        @Setting(
                        is = "cosine",
                        doc =
                                "after the warm-up: constant, a fall to the end that is linear or"
                                        + " half a cosine, or wsd, which is stable and falls in a line"
                                        + " at the end")
                LearningRate.Schedule schedule,
        @Setting(
                        is = "auto",
                        word = "auto",
                        range = "[1, )",
                        doc = "steps of the fall at the end (wsd); auto: a tenth of run.steps")
                Optional<Integer> decaySteps,
        @Setting(is = "0.9", range = "[0, 1)", doc = "decay of the first moment") double beta1,
        @Setting(is = "0.95", range = "[0, 1)", doc = "decay of the second moment") double beta2,
        @Setting(is = "1e-8", range = "(0, )", doc = "keeps the update finite") double epsilon,
        @Setting(is = "0.1", range = "[0, )", doc = "decoupled weight decay; 0: none")
                double weightDecay,
        @Setting(is = "false", doc = "decay biases and gains too, not only matrices")
                boolean decayAll,
        @Setting(is = "1.0", range = "[0, )", doc = "largest global gradient norm; 0: no limit")
                double clipNorm,
        @Setting(
                        is = "float32",
                        doc =
                                "how gradients of micro-batches are added up: in float32, in the"
                                        + " order of the schedule and then of replicas; or in"
                                        + " 64-bit integers, whose sum has the same bits in every"
                                        + " order and however replicas share the micro-batches")
                GradientSum gradientSum,
        @Setting(
                        is = "float32",
                        doc =
                                "how both moments are kept: in float32, or in 8 bits with a scale"
                                        + " for 256 of them, which saves six of eight bytes a"
                                        + " parameter; those of embeddings stay float32")
                OptimizerState state,
        @Setting(
                        is = "none",
                        doc =
                                "what the loss is multiplied by, so that narrow gradients do not"
                                        + " vanish; if not none, a step that overflows is skipped;"
                                        + " dynamic: as the next keys say")
                LossScale lossScale,
        @Setting(
                        is = "4294967296",
                        range = "[1, )",
                        doc = "a dynamic scale in the beginning; a power of two")
                double lossScaleInitial,
        @Setting(
                        is = "1000",
                        range = "[1, )",
                        doc = "steps without an overflow after which a dynamic scale doubles")
                int lossScaleWindow,
        @Setting(
                        is = "2",
                        range = "[1, )",
                        doc =
                                "the overflow from which on each one halves a dynamic scale, until"
                                        + " it doubles")
                int lossScaleHysteresis) {

    /**
     * What the loss is multiplied by.
     *
     * @param word none, dynamic, or a power of two
     */
    public record LossScale(String word) {
        static final LossScale NONE = new LossScale("none");
        private static final String DYNAMIC = "dynamic";

        /** Returns whether this is written the way that a scale is. */
        static boolean isScale(String word) {
            return word.equals(NONE.word) || word.equals(DYNAMIC) || constant(word).isPresent();
        }

        private static Optional<Double> constant(String word) {
            try {
                double scale = Double.parseDouble(word);
                return LossScaling.isScale(scale) ? Optional.of(scale) : Optional.empty();
            } catch (NumberFormatException e) {
                return Optional.empty();
            }
        }

        boolean isDynamic() {
            return word.equals(DYNAMIC);
        }
    }

    /** How the loss is scaled; empty if it is not. */
    public Optional<LossScaling> scaling() {
        return lossScale.isDynamic()
                ? Optional.of(
                        new LossScaling(
                                true, lossScaleInitial, lossScaleWindow, lossScaleHysteresis))
                : LossScale.constant(lossScale.word()).map(LossScaling::constant);
    }

    /** The learning rate at the end of the decay. */
    public double finalLearningRate() {
        return minLearningRate.orElse(learningRate / 10);
    }

    /** The learning rate of each step of a run of {@code steps}. */
    public LearningRate rates(int steps) {
        return new LearningRate(
                schedule,
                learningRate,
                finalLearningRate(),
                warmupSteps,
                schedule == LearningRate.Schedule.WSD ? stepsOfDecay(steps) : 0,
                steps);
    }

    private int stepsOfDecay(int steps) {
        return decaySteps.orElse(Math.ceilDiv(steps, 10));
    }
}
