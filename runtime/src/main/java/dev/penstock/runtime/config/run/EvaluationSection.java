package dev.penstock.runtime.config.run;

import dev.penstock.runtime.config.reading.Setting;
import java.util.List;

/**
 * Section {@code evaluation}: the loss on held-out text.
 *
 * @param every steps between two evaluations; 0: never
 * @param batches batches of one evaluation
 * @param tasks measured after the steps that are evaluated and saved
 */
public record EvaluationSection(
        @Setting(is = "50", range = "[0, )", doc = "steps between two evaluations; 0: never")
                int every,
        @Setting(is = "8", range = "[1, )", doc = "batches of one evaluation") int batches,
        @Setting(
                        is = "[]",
                        doc =
                                "measured with the checkpoints of evaluations, by published"
                                        + " protocols; needs checkpoint.every to divide"
                                        + " evaluation.every")
                List<EvaluationTask> tasks) {}
