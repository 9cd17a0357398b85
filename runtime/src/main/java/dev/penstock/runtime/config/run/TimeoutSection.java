package dev.penstock.runtime.config.run;

import dev.penstock.runtime.config.reading.Setting;
import java.time.Duration;

/**
 * Section {@code timeouts}.
 *
 * @param lease silence after which a stage counts as dead
 * @param stallReport time without progress after which the run says who waits for whom
 * @param stall time without progress after which all ranks are asked anew
 * @param start longest time from the start of the run to all stages ready
 * @param stop longest time for an orderly end
 */
public record TimeoutSection(
        @Setting(
                        is = "3 s",
                        range = "[100 ms, 10 minutes]",
                        doc = "silence after which a stage counts as dead")
                Duration lease,
        @Setting(
                        is = "5 s",
                        range = "[100 ms, 1 day]",
                        doc = "time without progress after which waits are reported")
                Duration stallReport,
        @Setting(
                        is = "60 s",
                        range = "[1 s, 1 day]",
                        doc =
                                "time in which nothing moves and no rank computes, after which all are asked anew")
                Duration stall,
        @Setting(is = "60 s", range = "[1 s, 1 day]", doc = "longest time until all are ready")
                Duration start,
        @Setting(is = "30 s", range = "[1 s, 1 day]", doc = "longest time for an orderly end")
                Duration stop) {}
