package dev.penstock.actors.dataplane.emulated;

import java.math.BigDecimal;
import java.math.MathContext;
import java.util.ArrayList;
import java.util.List;

/**
 * What a link can do, in each direction by itself.
 *
 * @param bytesPerSecond above 0; infinite where bytes take no time
 * @param latencyNanos from the sending of a byte to its arrival, 0 or more
 * @param loss the probability that a frame of {@value #FRAME_BYTES} bytes is lost, from 0 up to but
 *     not including 1
 */
public record EmulatedLink(double bytesPerSecond, long latencyNanos, double loss) {
    /** Bytes of a tensor in one frame, as Ethernet carries them. */
    public static final int FRAME_BYTES = 1_408;

    /** A link that adds nothing to the real one. */
    public static final EmulatedLink NONE = new EmulatedLink(Double.POSITIVE_INFINITY, 0, 0);

    public EmulatedLink {
        if (!(bytesPerSecond > 0) || latencyNanos < 0 || !(loss >= 0 && loss < 1)) {
            throw new IllegalArgumentException(
                    "a link has a bandwidth above 0, a latency of 0 or more and a loss of 0 or more"
                            + " and less than 1, got %s B/s, %d ns and %s"
                                    .formatted(bytesPerSecond, latencyNanos, loss));
        }
    }

    /** Returns how long so many bytes keep the link busy; 0 where it has no limit. */
    public long nanos(long bytes) {
        return Math.round(1e9 * bytes / bytesPerSecond);
    }

    /** Returns how long so many bytes keep the link busy on average, lost frames included. */
    public long meanNanos(long bytes) {
        return Math.round(nanos(bytes) / (1 - loss));
    }

    /**
     * Returns how long a tensor of so many bytes is under way on average after it has left: the
     * latency, and a round trip as often as any of its frames is lost again.
     */
    public long meanLatencyNanos(long bytes) {
        double rounds = 0;
        double lostAgain = loss;
        while (lostAgain > 1e-12) {
            rounds += 1 - Math.pow(1 - lostAgain, frames(bytes));
            lostAgain *= loss;
        }
        return Math.round(latencyNanos * (1 + 2 * rounds));
    }

    /** Returns the frames that so many bytes are divided into. */
    static long frames(long bytes) {
        return Math.ceilDiv(bytes, (long) FRAME_BYTES);
    }

    /** Describes the link for people: {@code 100 Mbit/s, 20 ms}. */
    @Override
    public String toString() {
        List<String> parts = new ArrayList<>();
        if (bytesPerSecond != Double.POSITIVE_INFINITY) {
            double bits = 8 * bytesPerSecond;
            parts.add(
                    bits >= 1e9 ? number(bits / 1e9) + " Gbit/s" : number(bits / 1e6) + " Mbit/s");
        }
        if (latencyNanos > 0) {
            parts.add(number(latencyNanos / 1e6) + " ms");
        }
        if (loss > 0) {
            parts.add(number(100 * loss) + " % lost");
        }
        return parts.isEmpty() ? "no limit" : String.join(", ", parts);
    }

    private static String number(double value) {
        return BigDecimal.valueOf(value)
                .round(new MathContext(3))
                .stripTrailingZeros()
                .toPlainString();
    }
}
