package dev.penstock.actors.dataplane.aeron;

import dev.penstock.actors.dataplane.TensorFrame;
import java.lang.foreign.MemorySegment;
import org.agrona.DirectBuffer;

/** Frames in the clear, with a CRC-32C of header and payload if asked for. */
final class PlainFrames implements FrameForm {
    private final boolean crc;
    private long payloadAt;

    PlainFrames(boolean crc) {
        this.crc = crc;
    }

    @Override
    public boolean checks() {
        return crc;
    }

    @Override
    public void complete(
            TensorFrame header,
            DirectBuffer log,
            int at,
            MemorySegment tensor,
            long offset,
            int chunk,
            long position) {
        RawMemory.copyTo(log, at + TensorFrame.HEADER_BYTES, tensor, offset, chunk);
        if (crc) {
            header.withCrc();
            header.crc32c(Checksums.ofFrame(log, at, TensorFrame.HEADER_BYTES + chunk));
        }
    }

    @Override
    public boolean isIntact(
            TensorFrame header, DirectBuffer log, int at, int length, long position) {
        payloadAt = log.addressOffset() + at + TensorFrame.HEADER_BYTES;
        if (!crc) {
            return !header.hasCrc() && !header.isSealed();
        }
        return header.hasCrc() && Checksums.ofFrame(log, at, length) == header.crc32c();
    }

    @Override
    public MemorySegment payload() {
        return RawMemory.EVERYTHING;
    }

    @Override
    public long payloadAt() {
        return payloadAt;
    }
}
