package dev.penstock.runtime.config.run;

import dev.penstock.runtime.config.reading.Setting;
import java.util.List;

/**
 * Section {@code report}.
 *
 * @param traceSteps steps whose ops are recorded for the timeline; those beyond the run are ignored
 * @param opTimesEvery of how many steps the event log has the op times of one
 * @param sample whether a run on text shows at its end what the model writes now
 * @param dashboard whether the run is shown by a page while it lives
 * @param dashboardPort of loopback; 0: any
 */
public record ReportSection(
        @Setting(
                        is = "[5, 20, 50]",
                        range = "[1, )",
                        doc = "steps whose ops are recorded for the timeline")
                List<Integer> traceSteps,
        @Setting(
                        is = "10",
                        range = "[1, )",
                        doc =
                                "the event log keeps op times of the first steps, then of every so"
                                        + " many; rarer in long runs")
                int opTimesEvery,
        @Setting(
                        is = "true",
                        doc =
                                "whether a run on text ends with a sample of what the model"
                                        + " writes")
                boolean sample,
        @Setting(is = "true", doc = "whether a page on loopback shows the run while it lives")
                boolean dashboard,
        @Setting(is = "0", range = "[0, 65535]", doc = "port of that page; 0: any that is free")
                int dashboardPort) {}
