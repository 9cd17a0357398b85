package dev.penstock.runtime.config;

import java.util.List;

/**
 * Section {@code report}.
 *
 * @param traceSteps steps whose ops are recorded for the timeline; those beyond the run are ignored
 */
public record ReportSection(
        @Setting(
                        is = "[5, 20, 50]",
                        range = "[1, )",
                        doc = "steps whose ops are recorded for the timeline")
                List<Integer> traceSteps) {}
