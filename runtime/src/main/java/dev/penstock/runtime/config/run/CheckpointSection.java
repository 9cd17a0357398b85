package dev.penstock.runtime.config.run;

import dev.penstock.runtime.config.reading.Setting;

/**
 * Section {@code checkpoint}: what is saved during a run.
 *
 * @param every steps between two checkpoints; 0: at the end only
 * @param retain newest checkpoints that are kept
 */
public record CheckpointSection(
        @Setting(
                        is = "100",
                        range = "[0, )",
                        doc = "steps between two checkpoints; 0: at the end only")
                int every,
        @Setting(is = "2", range = "[1, )", doc = "newest checkpoints that are kept") int retain) {}
