package dev.penstock.runtime.config.hardware;

import dev.penstock.runtime.config.reading.Bytes;
import dev.penstock.runtime.config.reading.Setting;
import java.time.Duration;

/**
 * An entry of {@code nodes} in a cluster file: equal nodes.
 *
 * @param name for people
 * @param count how many nodes
 * @param devices of each node
 * @param memory of a device
 * @param reserved part of it that a plan leaves alone
 * @param peakTflops matrix products of a device on paper, 10^12 FLOP/s
 * @param achieved share of the peak that training reaches
 * @param memoryBandwidth of a device, per second
 * @param hostBandwidth between a device and its host's memory, each way, per second
 * @param diskBandwidth between a device and a folder, each way, per second
 * @param linkBandwidth between two devices of a node, each way, per second
 * @param linkLatency between them
 */
public record NodesSection(
        @Setting(doc = "what these nodes are called") String name,
        @Setting(is = "1", range = "[1, 1000000]", doc = "how many such nodes there are") int count,
        @Setting(is = "1", range = "[1, 1024]", doc = "devices of each node") int devices,
        @Setting(range = "[1 MiB, )", doc = "memory of a device") Bytes memory,
        @Setting(
                        is = "0 B",
                        range = "[0 B, )",
                        doc = "memory of a device that a plan leaves to others")
                Bytes reserved,
        @Setting(range = "(0, )", doc = "matrix products of a device on paper, in 10^12 FLOP/s")
                double peakTflops,
        @Setting(is = "0.5", range = "(0, 1]", doc = "share of the peak that training reaches")
                double achieved,
        @Setting(range = "[1 MiB, )", doc = "what a device's memory moves in a second")
                Bytes memoryBandwidth,
        @Setting(
                        is = "4 GB",
                        range = "[1 KiB, )",
                        doc =
                                "what goes from a device to its host's memory in a second, or back:"
                                        + " activations that leave it")
                Bytes hostBandwidth,
        @Setting(
                        is = "1 GB",
                        range = "[1 KiB, )",
                        doc = "what goes to a folder in a second, or back: what is swapped")
                Bytes diskBandwidth,
        @Setting(
                        is = "16 GB",
                        range = "[1 KiB, )",
                        doc = "what one device of a node sends to another in a second")
                Bytes linkBandwidth,
        @Setting(is = "5 us", range = "[0 s, 1 s]", doc = "latency between devices of a node")
                Duration linkLatency) {}
