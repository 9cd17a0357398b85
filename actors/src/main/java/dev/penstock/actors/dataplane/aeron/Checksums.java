package dev.penstock.actors.dataplane.aeron;

import java.lang.foreign.MemorySegment;
import java.util.zip.CRC32C;

/** CRC32C of a part of a segment. */
final class Checksums {
    private Checksums() {}

    static int crc32c(MemorySegment segment, long offset, int bytes) {
        CRC32C crc = new CRC32C();
        crc.update(segment.asSlice(offset, bytes).asByteBuffer());
        return (int) crc.getValue();
    }
}
