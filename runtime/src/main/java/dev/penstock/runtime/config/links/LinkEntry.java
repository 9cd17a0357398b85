package dev.penstock.runtime.config.links;

import dev.penstock.actors.dataplane.emulated.EmulatedLink;
import dev.penstock.runtime.config.reading.Setting;
import java.time.Duration;
import java.util.Optional;

/**
 * An entry of {@code data-plane.emulate.links}: the link from one rank to another.
 *
 * @param from the sender's rank
 * @param to the receiver's rank
 * @param bandwidth empty: as of other links
 * @param latency empty: as of other links
 * @param loss empty: as of other links
 */
public record LinkEntry(
        @Setting(range = "[0, )", doc = "the rank that sends") int from,
        @Setting(range = "[0, )", doc = "the rank that receives") int to,
        @Setting(
                        is = "usual",
                        word = "usual",
                        range = "[1 kbit/s, )",
                        doc = "what the link carries")
                Optional<Bandwidth> bandwidth,
        @Setting(is = "usual", word = "usual", range = "[0 s, 10 s]", doc = "its latency")
                Optional<Duration> latency,
        @Setting(is = "usual", word = "usual", range = "[0 %, 50 %]", doc = "its lost frames")
                Optional<FrameLoss> loss) {

    /** Returns the link. */
    public EmulatedLink over(EmulatedLink usual) {
        return new EmulatedLink(
                bandwidth.map(Bandwidth::bytesPerSecond).orElse(usual.bytesPerSecond()),
                latency.map(Duration::toNanos).orElse(usual.latencyNanos()),
                loss.map(FrameLoss::share).orElse(usual.loss()));
    }
}
