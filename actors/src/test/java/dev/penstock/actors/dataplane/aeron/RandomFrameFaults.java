package dev.penstock.actors.dataplane.aeron;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.FrameFaults;
import dev.penstock.actors.dataplane.FrameKey;

/**
 * Harms a share of the frames. What becomes of a frame depends on the seed, the channel and the
 * frame's number alone, so a seed repeats what it did.
 *
 * @param drop share of the frames that are lost, 0 to 1; as the others, which are drawn in this
 *     order, their sum at most 1
 * @param duplicate share that arrives twice
 * @param corrupt share that arrives with a bit flipped
 * @param delay share that arrives late
 * @param delayNanos how late
 */
record RandomFrameFaults(
        long seed, double drop, double duplicate, double corrupt, double delay, long delayNanos)
        implements FrameFaults {
    RandomFrameFaults {
        double sum = drop + duplicate + corrupt + delay;
        if (Math.min(Math.min(drop, duplicate), Math.min(corrupt, delay)) < 0 || sum > 1) {
            throw new IllegalArgumentException(
                    "expected shares of at least 0 and together at most 1, got %s, %s, %s and %s"
                            .formatted(drop, duplicate, corrupt, delay));
        }
    }

    @Override
    public Fate of(FrameKey tensor, long frame) {
        double drawn = draw(tensor.channel(), frame);
        if (drawn < drop) {
            return Fate.DROP;
        }
        if (drawn < drop + duplicate) {
            return Fate.DUPLICATE;
        }
        if (drawn < drop + duplicate + corrupt) {
            return Fate.CORRUPT;
        }
        return drawn < drop + duplicate + corrupt + delay ? new Fate.Delay(delayNanos) : Fate.PASS;
    }

    /** Evenly from 0 to 1: the finalizer of MurmurHash3 over all that counts. */
    private double draw(ChannelKey channel, long frame) {
        long hash = seed + channel.kind().ordinal();
        hash = mixed(hash * 31 + channel.fromStage());
        hash = mixed(hash * 31 + channel.stage());
        hash = mixed(hash * 31 + frame);
        return (hash >>> 11) * 0x1p-53;
    }

    private static long mixed(long value) {
        long hash = (value ^ (value >>> 33)) * 0xff51afd7ed558ccdL;
        hash = (hash ^ (hash >>> 33)) * 0xc4ceb9fe1a85ec53L;
        return hash ^ (hash >>> 33);
    }
}
