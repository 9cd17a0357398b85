package dev.penstock.actors.dataplane.emulated;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.FrameKey;
import java.util.SplittableRandom;

/**
 * When a link delivers what is sent over it: tensors leave one after another, in the order of their
 * arrival here.
 *
 * <pre>
 *   begins    = the later of now and when the link is free
 *   free      = begins + bytes / bandwidth
 *   delivered = free + latency
 * </pre>
 *
 * <p>Frames that are lost are sent once more, together: the tensor comes later by a round trip and
 * by the time of these frames, which keep the link busy again and may be lost again. Which frames
 * are lost depends on the seed and the tensor's key alone. Not for several threads at a time.
 */
final class LinkQueue {
    private final EmulatedLink link;
    private final long seed;
    private boolean used;
    private long freeNanos;

    /**
     * @param seed of this direction
     */
    LinkQueue(EmulatedLink link, long seed) {
        this.link = link;
        this.seed = seed;
    }

    EmulatedLink link() {
        return link;
    }

    /**
     * Sends a tensor.
     *
     * @param nowNanos as of {@link System#nanoTime}, never less than before
     * @return when it is delivered
     */
    long send(FrameKey key, long bytes, long nowNanos) {
        freeNanos = freeAt(nowNanos) + link.nanos(bytes);
        used = true;
        long delivered = freeNanos + link.latencyNanos();
        if (link.loss() > 0) {
            var random = new SplittableRandom(seed(key));
            long lost = lost(EmulatedLink.frames(bytes), random);
            while (lost > 0) {
                long again = link.nanos(Math.min(bytes, lost * EmulatedLink.FRAME_BYTES));
                freeNanos += again;
                delivered += 2 * link.latencyNanos() + again;
                lost = lost(lost, random);
            }
        }
        return delivered;
    }

    /** Returns when the link has sent all of it and is free; now if it is. */
    long freeAt(long nowNanos) {
        return used && freeNanos - nowNanos > 0 ? freeNanos : nowNanos;
    }

    private long lost(long frames, SplittableRandom random) {
        long lost = 0;
        for (long frame = 0; frame < frames; frame++) {
            lost += random.nextDouble() < link.loss() ? 1 : 0;
        }
        return lost;
    }

    private long seed(FrameKey key) {
        ChannelKey channel = key.channel();
        long mixed = seed;
        long[] parts = {
            channel.kind().ordinal(),
            channel.fromStage(),
            channel.stage(),
            key.step(),
            key.microBatch(),
            key.slice()
        };
        for (long part : parts) {
            mixed = new SplittableRandom(mixed ^ part).nextLong();
        }
        return mixed;
    }
}
