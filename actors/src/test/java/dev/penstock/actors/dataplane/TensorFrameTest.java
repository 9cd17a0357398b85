package dev.penstock.actors.dataplane;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.SplittableRandom;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class TensorFrameTest {
    private static final long RUN = 0x1122334455667788L;
    private static final int EPOCH = 3;
    private static final int AT = 32;

    private final UnsafeBuffer buffer = new UnsafeBuffer(new byte[512]);
    private final TensorFrame written = new TensorFrame();
    private final TensorFrame read = new TensorFrame();

    @ParameterizedTest
    @EnumSource(FrameKind.class)
    void aChunkComesBackAsItWasWritten(FrameKind kind) {
        FrameKey key = new FrameKey(new ChannelKey(kind, 4, 5), 1L << 40, 7, 2);
        written.begin(buffer, AT, TensorFrame.Type.DATA, RUN, EPOCH, 9)
                .chunk(key, 1L << 33, 1L << 32, 100)
                .sequence(1L << 35)
                .withCrc()
                .crc32c(-77);

        int length = TensorFrame.HEADER_BYTES + 100;
        read.wrap(buffer, AT, length);

        assertThat(read.check(length, RUN, EPOCH)).isNull();
        assertThat(read.type()).isEqualTo(TensorFrame.Type.DATA);
        assertThat(read.isOf(key)).isTrue();
        assertThat(read.isOf(new FrameKey(key.channel(), key.step(), 7, 3))).isFalse();
        assertThat(read.fromRank()).isEqualTo(9);
        assertThat(read.totalBytes()).isEqualTo(1L << 33);
        assertThat(read.offset()).isEqualTo(1L << 32);
        assertThat(read.chunkBytes()).isEqualTo(100);
        assertThat(read.sequence()).isEqualTo(1L << 35);
        assertThat(read.hasCrc()).isTrue();
        assertThat(read.isSealed()).isFalse();
        assertThat(read.crc32c()).isEqualTo(-77);
    }

    @Test
    void theWireIsLittleEndianAndBeginsWithItsName() {
        written.begin(buffer, AT, TensorFrame.Type.CREDIT, RUN, EPOCH, 0).taken(258);

        assertThat(buffer.getStringWithoutLengthAscii(AT, 4)).isEqualTo("PSTK");
        assertThat(buffer.getByte(AT + 4)).isEqualTo((byte) TensorFrame.VERSION);
        assertThat(buffer.getByte(AT + 8)).isEqualTo((byte) 0x88);
        assertThat(buffer.getByte(AT + 48)).isEqualTo((byte) 2);
        assertThat(buffer.getByte(AT + 49)).isEqualTo((byte) 1);
    }

    @Test
    void anOldHeaderIsNotSeenThroughANewOne() {
        buffer.setMemory(0, buffer.capacity(), (byte) 0xff);
        written.begin(buffer, AT, TensorFrame.Type.END_OF_STREAM, RUN, EPOCH, 1);

        read.wrap(buffer, AT, TensorFrame.HEADER_BYTES);

        assertThat(read.check(TensorFrame.HEADER_BYTES, RUN, EPOCH)).isNull();
    }

    @Test
    void noBytesMakeTheCheckThrow() {
        SplittableRandom random = new SplittableRandom(3);
        byte[] noise = new byte[256];
        for (int round = 0; round < 200_000; round++) {
            random.nextBytes(noise);
            buffer.putBytes(AT, noise);
            int length = random.nextInt(200);
            if (random.nextBoolean()) {
                written.begin(buffer, AT, TensorFrame.Type.DATA, RUN, EPOCH, 0);
                buffer.putBytes(AT + 20 + random.nextInt(76), noise, 0, 16);
            }

            FrameRefusal refusal = read.wrap(buffer, AT, length).check(length, RUN, EPOCH);

            if (refusal == null) {
                assertThat(read.offset() + read.chunkBytes())
                        .isLessThanOrEqualTo(read.totalBytes());
            }
        }
    }
}
