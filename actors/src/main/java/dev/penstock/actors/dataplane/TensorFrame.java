package dev.penstock.actors.dataplane;

import static java.nio.ByteOrder.LITTLE_ENDIAN;

import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.jspecify.annotations.Nullable;

/**
 * The header of a frame on the wire: a view over bytes that it does not own, for one thread at a
 * time. Little-endian, {@value #HEADER_BYTES} bytes, followed by the chunk of a data frame. The
 * fields fromStage and stage have a stage in 19 bits and a replica in the 12 above:
 *
 * <pre>
 *  0 int  magic        4 byte version    5 byte type       6 byte kind      7 byte flags
 *  8 long runId       16 int  epoch     20 int  fromRank  24 int fromStage 28 int  stage
 * 32 long step        40 int  microBatch 44 int slice
 * 48 long totalBytes (data) or tensors taken so far (credit)
 * 56 long offset      64 int  chunkBytes 68 int crc32c
 * 72 long sequence    80 16 bytes: seal, zero without
 * </pre>
 *
 * <p>A tensor travels as chunks in rising order of offset; tensors are numbered by channel in the
 * order of their sending, so a chunk that is missing is seen by the next. A credit carries the
 * numbers of tensors taken and verified since the channel was opened, so a later credit makes up
 * for one that was lost. Nothing of a frame may be used before {@link #check} returned null, nor
 * before its checksum or seal was found right where one is due.
 */
public final class TensorFrame {
    /** Bytes before the payload; 96 and Aeron's own 32 put the payload on a cache line. */
    public static final int HEADER_BYTES = 96;

    /** The version written and accepted. */
    public static final int VERSION = 2;

    /** What a frame is. The wire uses the ordinal: append only. */
    public enum Type {
        /** A chunk of a tensor. */
        DATA,
        /** The receiver took tensors. */
        CREDIT,
        /** The sender closed its endpoint in good order. */
        END_OF_STREAM,
        /** The receiver misses what comes from a sequence and an offset on. */
        RESEND,
        /** The sender asks what has arrived; sequence and offset say how far it is. */
        PROBE
    }

    /** Bytes of a seal. */
    public static final int SEAL_BYTES = 16;

    /** Where the seal is; what lies before it is sealed with the chunk. */
    public static final int SEAL_AT = 80;

    /** Flag: the field crc32c holds the checksum of the chunk. */
    private static final int WITH_CRC = 1;

    /** Flag: the chunk is enciphered, the seal authenticates it and the header. */
    private static final int SEALED = 2;

    private static final int MAGIC = 0x4B545350; // "PSTK"
    private static final Type[] TYPES = Type.values();
    private static final FrameKind[] KINDS = FrameKind.values();

    private static final int STAGE_BITS = 19;

    private static final int MAGIC_AT = 0;
    private static final int VERSION_AT = 4;
    private static final int TYPE_AT = 5;
    private static final int KIND_AT = 6;
    private static final int FLAGS_AT = 7;
    private static final int RUN_AT = 8;
    private static final int EPOCH_AT = 16;
    private static final int FROM_RANK_AT = 20;
    private static final int FROM_STAGE_AT = 24;
    private static final int STAGE_AT = 28;
    private static final int STEP_AT = 32;
    private static final int MICRO_BATCH_AT = 40;
    private static final int SLICE_AT = 44;
    private static final int TOTAL_AT = 48;
    private static final int OFFSET_AT = 56;
    private static final int CHUNK_AT = 64;

    /** Where the checksum is, which covers all but itself. */
    public static final int CRC_AT = 68;

    private static final int SEQUENCE_AT = 72;

    private final UnsafeBuffer header = new UnsafeBuffer(0, 0);

    /** Points this view at a frame's first byte, for reading. */
    public TensorFrame wrap(DirectBuffer buffer, int offset, int length) {
        header.wrap(buffer, offset, Math.min(length, HEADER_BYTES));
        return this;
    }

    /** Points this view at a frame to be written and fills in what all frames carry. */
    public TensorFrame begin(
            MutableDirectBuffer buffer, int at, Type type, long runId, int epoch, int fromRank) {
        header.wrap(buffer, at, HEADER_BYTES);
        header.setMemory(0, HEADER_BYTES, (byte) 0);
        header.putInt(MAGIC_AT, MAGIC, LITTLE_ENDIAN);
        header.putByte(VERSION_AT, (byte) VERSION);
        header.putByte(TYPE_AT, (byte) type.ordinal());
        header.putLong(RUN_AT, runId, LITTLE_ENDIAN);
        header.putInt(EPOCH_AT, epoch, LITTLE_ENDIAN);
        header.putInt(FROM_RANK_AT, fromRank, LITTLE_ENDIAN);
        return this;
    }

    /** Writes the channel: of a data frame, or of the tensors that a credit frame is about. */
    public TensorFrame channel(ChannelKey channel) {
        header.putByte(KIND_AT, (byte) channel.kind().ordinal());
        header.putInt(FROM_STAGE_AT, end(channel.fromStage(), channel.fromPeer()), LITTLE_ENDIAN);
        header.putInt(STAGE_AT, end(channel.stage(), channel.toPeer()), LITTLE_ENDIAN);
        return this;
    }

    private static int end(int stage, int peer) {
        return peer << STAGE_BITS | stage;
    }

    /** Writes which part of which tensor follows the header. */
    public TensorFrame chunk(FrameKey key, long totalBytes, long offset, int chunkBytes) {
        channel(key.channel());
        header.putLong(STEP_AT, key.step(), LITTLE_ENDIAN);
        header.putInt(MICRO_BATCH_AT, key.microBatch(), LITTLE_ENDIAN);
        header.putInt(SLICE_AT, key.slice(), LITTLE_ENDIAN);
        header.putLong(TOTAL_AT, totalBytes, LITTLE_ENDIAN);
        header.putLong(OFFSET_AT, offset, LITTLE_ENDIAN);
        header.putInt(CHUNK_AT, chunkBytes, LITTLE_ENDIAN);
        return this;
    }

    /** Writes the tensor's number on its channel; of a credit: how many are verified. */
    public TensorFrame sequence(long number) {
        header.putLong(SEQUENCE_AT, number, LITTLE_ENDIAN);
        return this;
    }

    /** Writes how far the sender is, or from where on the receiver misses something. */
    public TensorFrame place(long sequence, long offset) {
        header.putLong(OFFSET_AT, offset, LITTLE_ENDIAN);
        return sequence(sequence);
    }

    /** Says that a checksum will be written: before it is computed, since it covers this, too. */
    public TensorFrame withCrc() {
        header.putByte(FLAGS_AT, (byte) WITH_CRC);
        return this;
    }

    /** Writes the checksum. */
    public TensorFrame crc32c(int crc) {
        header.putInt(CRC_AT, crc, LITTLE_ENDIAN);
        return this;
    }

    /** Says that the chunk is enciphered and a seal will be written: covered by the seal. */
    public TensorFrame sealed() {
        header.putByte(FLAGS_AT, (byte) SEALED);
        return this;
    }

    /** Writes how many tensors of the channel were taken since it was opened. */
    public TensorFrame taken(long tensors) {
        header.putLong(TOTAL_AT, tensors, LITTLE_ENDIAN);
        return this;
    }

    /**
     * Judges the header by itself; channels, slots and credits are the receiver's to judge.
     *
     * @param length of the whole frame, header included
     * @return null if every field may be used
     */
    public @Nullable FrameRefusal check(int length, long runId, int epoch) {
        if (length < HEADER_BYTES || header.getInt(MAGIC_AT, LITTLE_ENDIAN) != MAGIC) {
            return FrameRefusal.NOT_A_FRAME;
        }
        if (header.getByte(VERSION_AT) != VERSION) {
            return FrameRefusal.VERSION;
        }
        if (!knownValues()) {
            return FrameRefusal.UNKNOWN_VALUE;
        }
        if (header.getLong(RUN_AT, LITTLE_ENDIAN) != runId) {
            return FrameRefusal.OTHER_RUN;
        }
        if (header.getInt(EPOCH_AT, LITTLE_ENDIAN) != epoch) {
            return FrameRefusal.OTHER_EPOCH;
        }
        if (anyNegative()) {
            return FrameRefusal.NEGATIVE_FIELD;
        }
        return lengthsAgree(length) ? null : FrameRefusal.BAD_LENGTH;
    }

    private boolean knownValues() {
        return Byte.toUnsignedInt(header.getByte(TYPE_AT)) < TYPES.length
                && Byte.toUnsignedInt(header.getByte(KIND_AT)) < KINDS.length
                && Byte.toUnsignedInt(header.getByte(FLAGS_AT)) <= SEALED
                && (isSealed()
                        || (header.getLong(SEAL_AT, LITTLE_ENDIAN) == 0
                                && header.getLong(SEAL_AT + 8, LITTLE_ENDIAN) == 0));
    }

    private boolean anyNegative() {
        return (fromRank() | fromEnd() | toEnd() | microBatch() | slice() | chunkBytes()) < 0
                || (step() | totalBytes() | offset() | sequence()) < 0;
    }

    private boolean lengthsAgree(int length) {
        return switch (type()) {
            case DATA ->
                    chunkBytes() > 0
                            && chunkBytes() == length - HEADER_BYTES
                            && offset() < totalBytes()
                            && chunkBytes() <= totalBytes() - offset();
            case CREDIT, END_OF_STREAM, RESEND, PROBE -> length == HEADER_BYTES;
        };
    }

    /** Whether the header is of this tensor; spares a key per chunk. */
    public boolean isOf(FrameKey key) {
        return step() == key.step()
                && microBatch() == key.microBatch()
                && slice() == key.slice()
                && isOf(key.channel());
    }

    /** Whether the header is of this channel. */
    public boolean isOf(ChannelKey channel) {
        return toEnd() == end(channel.stage(), channel.toPeer())
                && fromEnd() == end(channel.fromStage(), channel.fromPeer())
                && kind() == channel.kind();
    }

    public Type type() {
        return TYPES[header.getByte(TYPE_AT)];
    }

    public FrameKind kind() {
        return KINDS[header.getByte(KIND_AT)];
    }

    public int fromRank() {
        return header.getInt(FROM_RANK_AT, LITTLE_ENDIAN);
    }

    private int fromEnd() {
        return header.getInt(FROM_STAGE_AT, LITTLE_ENDIAN);
    }

    private int toEnd() {
        return header.getInt(STAGE_AT, LITTLE_ENDIAN);
    }

    public long step() {
        return header.getLong(STEP_AT, LITTLE_ENDIAN);
    }

    public int microBatch() {
        return header.getInt(MICRO_BATCH_AT, LITTLE_ENDIAN);
    }

    public int slice() {
        return header.getInt(SLICE_AT, LITTLE_ENDIAN);
    }

    /** Bytes of the whole tensor. */
    public long totalBytes() {
        return header.getLong(TOTAL_AT, LITTLE_ENDIAN);
    }

    /** Of a credit frame: tensors taken since the channel was opened. */
    public long taken() {
        return header.getLong(TOTAL_AT, LITTLE_ENDIAN);
    }

    /** Where the chunk belongs in the tensor. */
    public long offset() {
        return header.getLong(OFFSET_AT, LITTLE_ENDIAN);
    }

    /** Bytes of the chunk. */
    public int chunkBytes() {
        return header.getInt(CHUNK_AT, LITTLE_ENDIAN);
    }

    /** The tensor's number on its channel, from 0; of a credit: how many are verified. */
    public long sequence() {
        return header.getLong(SEQUENCE_AT, LITTLE_ENDIAN);
    }

    public boolean hasCrc() {
        return header.getByte(FLAGS_AT) == WITH_CRC;
    }

    public boolean isSealed() {
        return header.getByte(FLAGS_AT) == SEALED;
    }

    public int crc32c() {
        return header.getInt(CRC_AT, LITTLE_ENDIAN);
    }
}
