package dev.penstock.runtime.config.hardware;

import dev.penstock.runtime.config.reading.Bytes;
import dev.penstock.runtime.config.reading.Setting;
import java.time.Duration;

/**
 * Section {@code network} of a cluster file.
 *
 * @param bandwidth what a node sends in a second, all its devices together
 * @param latency between nodes
 */
public record NetworkSection(
        @Setting(
                        is = "1.25 GB",
                        range = "[1 KiB, )",
                        doc = "what a node sends in a second, all its devices together")
                Bytes bandwidth,
        @Setting(is = "30 us", range = "[0 s, 10 s]", doc = "latency between nodes")
                Duration latency) {}
