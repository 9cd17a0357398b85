package dev.penstock.actors.dataplane.aeron;

import dev.penstock.actors.dataplane.TensorFrame;
import java.util.zip.CRC32C;
import org.agrona.DirectBuffer;

/** CRC-32C of a frame in a log. */
final class Checksums {
    private static final int AFTER_CRC = TensorFrame.CRC_AT + Integer.BYTES;

    private Checksums() {}

    /** Of header and payload, but for the field that holds it. */
    static int ofFrame(DirectBuffer log, int at, int length) {
        CRC32C crc = new CRC32C();
        long address = log.addressOffset() + at;
        crc.update(RawMemory.view(address, TensorFrame.CRC_AT));
        crc.update(RawMemory.view(address + AFTER_CRC, length - AFTER_CRC));
        return (int) crc.getValue();
    }
}
