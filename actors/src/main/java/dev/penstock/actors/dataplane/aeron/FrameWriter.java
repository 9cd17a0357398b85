package dev.penstock.actors.dataplane.aeron;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.FrameFaults;
import dev.penstock.actors.dataplane.FrameFaults.Fate;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.TensorFrame;
import io.aeron.ExclusivePublication;
import io.aeron.Publication;
import io.aeron.logbuffer.BufferClaim;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/** Writes frames into a publication's log. Used under the link's lock. */
final class FrameWriter {
    private static final int ATTEMPTS = 20;

    private final AeronSettings settings;
    private final int epoch;
    private final int fromRank;
    private final ExclusivePublication publication;
    private final FrameForm form;
    private final FrameFaults faults;
    private final boolean harmless;
    private final int longestChunk;
    private final BufferClaim claim = new BufferClaim();
    private final TensorFrame frame = new TensorFrame();

    private @Nullable Fate fate;
    private long heldUntilNanos;

    FrameWriter(
            AeronSettings settings,
            int epoch,
            int fromRank,
            ExclusivePublication publication,
            FrameForm form) {
        this.settings = settings;
        this.epoch = settings.epoch() + epoch;
        this.fromRank = fromRank;
        this.publication = publication;
        this.form = form;
        this.faults = settings.links().faults();
        this.harmless = faults.equals(FrameFaults.NONE);
        this.longestChunk = publication.maxPayloadLength() - TensorFrame.HEADER_BYTES;
    }

    int longestChunk() {
        return longestChunk;
    }

    boolean checks() {
        return form.checks();
    }

    boolean isConnected() {
        return publication.isConnected();
    }

    void close() {
        publication.close();
    }

    /**
     * Writes a chunk of a tensor; its channel is told before anybody can see it.
     *
     * @return Aeron's answer: a position, or why not
     */
    long chunk(
            OutboundChannel channel,
            FrameKey key,
            long sequence,
            MemorySegment tensor,
            long offset,
            int chunk) {
        Fate harm = harmless ? Fate.PASS : fateOf(key, channel.frames());
        if (harm instanceof Fate.Delay && System.nanoTime() - heldUntilNanos < 0) {
            return Publication.BACK_PRESSURED;
        }
        long result = publication.tryClaim(TensorFrame.HEADER_BYTES + chunk, claim);
        if (result > 0) {
            channel.claimed(key, sequence, tensor, chunk);
            write(key, sequence, tensor, offset, chunk, result, harm);
            FrameEvent.record(true, fromRank, channel.key(), chunk);
            fate = null;
            if (harm instanceof Fate.Duplicate) {
                again(key, sequence, tensor, offset, chunk);
            }
        }
        return result;
    }

    private void write(
            FrameKey key,
            long sequence,
            MemorySegment tensor,
            long offset,
            int chunk,
            long position,
            Fate harm) {
        boolean complete = false;
        try {
            begin(TensorFrame.Type.DATA)
                    .chunk(key, tensor.byteSize(), offset, chunk)
                    .sequence(sequence);
            form.complete(frame, claim.buffer(), claim.offset(), tensor, offset, chunk, position);
            complete = !(harm instanceof Fate.Drop);
            if (harm instanceof Fate.Corrupt) {
                int at = claim.offset() + TensorFrame.HEADER_BYTES + chunk / 2;
                claim.buffer().putByte(at, (byte) (claim.buffer().getByte(at) ^ 1));
            }
        } finally {
            if (complete) {
                claim.commit();
            } else {
                claim.abort();
            }
        }
    }

    private void again(FrameKey key, long sequence, MemorySegment tensor, long offset, int chunk) {
        long result = publication.tryClaim(TensorFrame.HEADER_BYTES + chunk, claim);
        if (result > 0) {
            write(key, sequence, tensor, offset, chunk, result, Fate.PASS);
        }
    }

    private Fate fateOf(FrameKey key, long number) {
        Fate drawn = fate;
        if (drawn == null) {
            drawn = faults.of(key, number);
            fate = drawn;
            if (drawn instanceof Fate.Delay(long nanos)) {
                heldUntilNanos = System.nanoTime() + nanos;
            }
        }
        return drawn;
    }

    /**
     * Writes a frame without payload.
     *
     * @return whether there was room
     */
    boolean signal(
            TensorFrame.Type type,
            @Nullable ChannelKey channel,
            long taken,
            long sequence,
            long offset) {
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            long result = publication.tryClaim(TensorFrame.HEADER_BYTES, claim);
            if (result > 0) {
                begin(type).place(sequence, offset).taken(taken);
                if (channel != null) {
                    frame.channel(channel);
                }
                form.complete(
                        frame, claim.buffer(), claim.offset(), MemorySegment.NULL, 0, 0, result);
                claim.commit();
                return true;
            }
            if (result != Publication.ADMIN_ACTION) {
                return false;
            }
        }
        return false;
    }

    private TensorFrame begin(TensorFrame.Type type) {
        return frame.begin(claim.buffer(), claim.offset(), type, settings.runId(), epoch, fromRank);
    }
}
