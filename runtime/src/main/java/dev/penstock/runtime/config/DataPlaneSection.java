package dev.penstock.runtime.config;

import java.util.Optional;

/**
 * Section {@code data-plane}: how tensors travel between stages.
 *
 * @param termLength a third of a channel's log buffer, a power of two
 * @param mtu bytes of one frame of the log, a multiple of 32
 * @param inFlight tensors that may be on their way per channel; empty: as many as the schedule
 *     needs
 */
public record DataPlaneSection(
        @Setting(
                        is = "8 MiB",
                        range = "[64 KiB, 1 GiB]",
                        doc = "a third of a channel's log buffer, a power of two")
                Bytes termLength,
        @Setting(is = "65504", range = "[256, 65504]", doc = "bytes of one frame, 32 by 32")
                int mtu,
        @Setting(
                        is = "auto",
                        word = "auto",
                        range = "[1, )",
                        doc = "tensors on their way per channel; auto: what the schedule needs")
                Optional<Integer> inFlight,
        @Setting(is = "adaptive", doc = "how the receiving thread waits") Poller poller,
        @Setting(is = "false", doc = "check every tensor with CRC-32C on arrival") boolean crc) {

    /** How the receiving thread waits: spin first, always sleep, or always spin. */
    public enum Poller {
        ADAPTIVE,
        SLEEPING,
        SPINNING
    }
}
