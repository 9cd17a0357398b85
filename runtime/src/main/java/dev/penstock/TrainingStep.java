package dev.penstock;

import java.time.Duration;

/**
 * One committed training step.
 *
 * @param step from 1
 * @param last step of the run
 * @param loss mean over the step's tokens, before the update
 * @param gradientNorm global L2 norm before clipping
 * @param learningRate of the update
 * @param tokens that it trained on
 * @param took from the start order to the last rank's done
 */
public record TrainingStep(
        long step,
        long last,
        double loss,
        double gradientNorm,
        double learningRate,
        long tokens,
        Duration took) {}
