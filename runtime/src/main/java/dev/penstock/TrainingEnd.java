package dev.penstock;

import java.nio.file.Path;
import java.util.Optional;
import java.util.OptionalDouble;

/**
 * How a training ended.
 *
 * @param completed whether all steps were done; otherwise it was stopped after a step, and can be
 *     resumed
 * @param step the last one that was done
 * @param directory of the run
 * @param loss of that step; empty if none was done now
 * @param heldOutLoss the last that was measured now, if any
 * @param checkpoint the newest one, if the run saves any
 * @param report a page about the run
 */
public record TrainingEnd(
        boolean completed,
        long step,
        Path directory,
        OptionalDouble loss,
        OptionalDouble heldOutLoss,
        Optional<Path> checkpoint,
        Path report) {}
