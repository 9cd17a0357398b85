package dev.penstock.runtime.config.run;

import dev.penstock.runtime.config.reading.Setting;

/**
 * Section {@code checkpoint}: what is saved during a run.
 *
 * @param every steps between two checkpoints; 0: at the end only
 * @param retain newest checkpoints that are kept
 * @param keepBest whether the one with the lowest validation loss is kept as well
 */
public record CheckpointSection(
        @Setting(
                        is = "100",
                        range = "[0, )",
                        doc = "steps between two checkpoints; 0: at the end only")
                int every,
        @Setting(is = "2", range = "[1, )", doc = "newest checkpoints that are kept") int retain,
        @Setting(
                        is = "false",
                        doc =
                                "keep the checkpoint with the lowest validation loss as well; needs"
                                        + " steps that are both saved and evaluated")
                boolean keepBest) {}
