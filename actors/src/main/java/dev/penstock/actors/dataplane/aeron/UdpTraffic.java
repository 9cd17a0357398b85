package dev.penstock.actors.dataplane.aeron;

import static io.aeron.driver.status.SystemCounterDescriptor.BYTES_SENT;
import static io.aeron.driver.status.SystemCounterDescriptor.RETRANSMITS_SENT;

import io.aeron.driver.MediaDriver;
import io.aeron.driver.status.SystemCounters;
import java.util.Optional;

/** What a media driver sent over UDP, for the log. */
final class UdpTraffic {
    private UdpTraffic() {}

    /** A line for people; empty if nothing was sent. Before the driver is closed. */
    static Optional<String> of(MediaDriver driver) {
        SystemCounters counters = driver.context().systemCounters();
        long bytes = counters.get(BYTES_SENT).get();
        return bytes == 0
                ? Optional.empty()
                : Optional.of(
                        "over UDP %d bytes were sent, %d times what had been lost was sent again"
                                .formatted(bytes, counters.get(RETRANSMITS_SENT).get()));
    }
}
