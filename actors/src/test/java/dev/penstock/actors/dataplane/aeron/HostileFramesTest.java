package dev.penstock.actors.dataplane.aeron;

import static dev.penstock.actors.dataplane.aeron.TwoRanks.DEADLINE;
import static dev.penstock.actors.dataplane.aeron.TwoRanks.FORWARD;
import static dev.penstock.actors.dataplane.aeron.TwoRanks.forward;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.FrameKind;
import dev.penstock.actors.dataplane.FrameRefusal;
import dev.penstock.actors.dataplane.TensorFrame;
import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.SplittableRandom;
import java.util.function.Consumer;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A stranger writes into rank 1's inbox while rank 0 sends to it. */
@Timeout(60)
class HostileFramesTest {
    private static final int TERM = 256 * 1024;
    private static final long RUN = 42;

    private final UnsafeBuffer buffer = new UnsafeBuffer(ByteBuffer.allocateDirect(4096));
    private EmbeddedDriver driver;
    private TwoRanks ranks;
    private Aeron stranger;
    private ExclusivePublication publication;

    @BeforeEach
    void openRanks() {
        driver = EmbeddedDriver.start(DriverSettings.inSharedMemory("hostile-test", TERM, 3));
        AeronSettings settings =
                AeronSettings.ipc(driver.directory(), RUN)
                        .withTermLength(TERM)
                        .withLinks(links -> links.withCrc(true));
        ranks = new TwoRanks(settings, 2, 3, 1000);
        stranger =
                Aeron.connect(
                        new Aeron.Context().aeronDirectoryName(driver.directory().toString()));
        publication = stranger.addExclusivePublication("aeron:ipc", settings.inbox(1, 0));
    }

    @AfterEach
    void close() {
        stranger.close();
        ranks.close();
        driver.close();
    }

    private void send(int length) {
        await().atMost(DEADLINE)
                .pollDelay(Duration.ZERO)
                .pollInterval(Duration.ofMillis(1))
                .until(() -> publication.offer(buffer, 0, length) > 0);
    }

    /** A valid first chunk of forward(0) of 100 bytes, then changed. */
    private void sendChanged(Consumer<TensorFrame> change) {
        TensorFrame frame = new TensorFrame();
        frame.begin(buffer, 0, TensorFrame.Type.DATA, RUN, 0, 0).chunk(forward(0), 100, 0, 100);
        change.accept(frame);
        withChecksum(frame, TensorFrame.HEADER_BYTES + 100);
        send(TensorFrame.HEADER_BYTES + 100);
    }

    /** As {@link #sendChanged}, but the checksum is that of the unchanged frame. */
    private void sendDamaged() {
        TensorFrame frame = new TensorFrame();
        frame.begin(buffer, 0, TensorFrame.Type.DATA, RUN, 0, 0).chunk(forward(0), 100, 0, 100);
        withChecksum(frame, TensorFrame.HEADER_BYTES + 100);
        buffer.putByte(TensorFrame.HEADER_BYTES + 50, (byte) (buffer.getByte(146) ^ 4));
        send(TensorFrame.HEADER_BYTES + 100);
    }

    private void signal(TensorFrame.Type type, Consumer<TensorFrame> fill) {
        TensorFrame frame = new TensorFrame().begin(buffer, 0, type, RUN, 0, 0);
        fill.accept(frame);
        withChecksum(frame, TensorFrame.HEADER_BYTES);
        send(TensorFrame.HEADER_BYTES);
    }

    private void withChecksum(TensorFrame frame, int length) {
        frame.wrap(buffer, 0, length);
        frame.withCrc().crc32c(0);
        frame.crc32c(Checksums.ofFrame(buffer, 0, length));
    }

    private void awaitRefusal(FrameRefusal reason) {
        await().atMost(DEADLINE).until(() -> ranks.plane.refusals().containsKey(reason));
        assertThat(ranks.plane.refusals()).containsOnlyKeys(reason);
        assertThat(ranks.receiver.describe()).contains("refused frames: {" + reason + "=");
    }

    private void tensorsStillTravel(int first, int count) {
        for (int microBatch = first; microBatch < first + count; microBatch++) {
            MemorySegment tensor = ranks.tensor(1000, microBatch);
            TwoRanks.offer(ranks.sender, forward(microBatch), tensor);
            int slot = TwoRanks.take(ranks.receiver, forward(microBatch));
            assertThat(ranks.slots.get(slot).mismatch(tensor)).isEqualTo(-1);
            ranks.receiver.release(FORWARD, slot);
        }
        assertThat(ranks.heardByReceiver.failures).isEmpty();
    }

    @Test
    void randomBytesNeverDisturb() {
        SplittableRandom random = new SplittableRandom(5);
        tensorsStillTravel(0, 1);
        for (int round = 0; round < 2_000; round++) {
            byte[] noise = new byte[random.nextInt(1300)];
            random.nextBytes(noise);
            buffer.putBytes(0, noise);
            send(noise.length);
        }

        tensorsStillTravel(1, 20);

        await().atMost(DEADLINE)
                .until(
                        () ->
                                ranks.plane.refusals().getOrDefault(FrameRefusal.NOT_A_FRAME, 0L)
                                        == 2_000);
    }

    @Test
    void headersWithFlippedBitsNeverDisturb() {
        SplittableRandom random = new SplittableRandom(6);
        tensorsStillTravel(0, 1);
        for (int round = 0; round < 2_000; round++) {
            sendChanged(
                    frame -> {
                        int at = random.nextInt(TensorFrame.HEADER_BYTES);
                        buffer.putByte(at, (byte) (buffer.getByte(at) ^ (1 << random.nextInt(8))));
                    });
        }

        tensorsStillTravel(1, 20);

        assertThat(ranks.heardByReceiver.frames).hasSize(21);
        assertThat(ranks.plane.refusals().values().stream().mapToLong(Long::longValue).sum())
                .isEqualTo(2_000);
    }

    @Test
    void fragmentedMessagesAreNoFrames() {
        UnsafeBuffer big = new UnsafeBuffer(new byte[20_000]);
        await().atMost(DEADLINE).until(() -> publication.offer(big) > 0);

        awaitRefusal(FrameRefusal.NOT_A_FRAME);
    }

    @Test
    void framesOfAnotherRunAreRefused() {
        sendChanged(frame -> frame.begin(buffer, 0, TensorFrame.Type.DATA, 43, 0, 0));

        awaitRefusal(FrameRefusal.OTHER_RUN);
        tensorsStillTravel(0, 3);
    }

    @Test
    void framesOfAnotherEpochAreRefused() {
        sendChanged(frame -> frame.begin(buffer, 0, TensorFrame.Type.DATA, RUN, 7, 0));

        awaitRefusal(FrameRefusal.OTHER_EPOCH);
        tensorsStillTravel(0, 3);
    }

    @Test
    void framesOfAnUnknownChannelAreRefused() {
        ChannelKey nowhere = new ChannelKey(FrameKind.ACTIVATION, 5, 6);
        sendChanged(frame -> frame.channel(nowhere));

        awaitRefusal(FrameRefusal.UNKNOWN_CHANNEL);
    }

    @Test
    void lengthsBeyondTheFrameAreRefused() {
        sendChanged(frame -> frame.chunk(forward(0), 1000, 0, 500));
        awaitRefusal(FrameRefusal.BAD_LENGTH);
    }

    @Test
    void chunksBeyondTheTensorAreRefused() {
        sendChanged(frame -> frame.chunk(forward(0), 150, 60, 100));
        awaitRefusal(FrameRefusal.BAD_LENGTH);
    }

    @Test
    void negativeNumbersAreRefused() {
        sendChanged(frame -> frame.chunk(new FrameKey(FORWARD, 1, -1, 0), 100, 0, 100));
        awaitRefusal(FrameRefusal.NEGATIVE_FIELD);
    }

    @Test
    void tensorsLongerThanASlotAreRefused() {
        sendChanged(frame -> frame.chunk(forward(0), 1001, 0, 100));
        awaitRefusal(FrameRefusal.LARGER_THAN_SLOT);
    }

    @Test
    void aTensorThatBeginsInTheMiddleIsRefused() {
        sendChanged(frame -> frame.chunk(forward(0), 1000, 100, 100));
        awaitRefusal(FrameRefusal.OUT_OF_ORDER);
    }

    @Test
    void aTensorThatLiesHereAlreadyIsRefused() {
        sendChanged(frame -> {});
        sendChanged(frame -> {});
        awaitRefusal(FrameRefusal.DUPLICATE);
    }

    @Test
    void tensorsBeyondTheCreditsAreRefused() {
        for (int microBatch = 0; microBatch < 3; microBatch++) {
            FrameKey key = forward(microBatch);
            int number = microBatch;
            sendChanged(frame -> frame.chunk(key, 100, 0, 100).sequence(number));
        }
        awaitRefusal(FrameRefusal.CREDIT_EXCEEDED);
        assertThat(ranks.heardByReceiver.frames).hasSize(2);
    }

    @Test
    void creditsForTensorsNeverSentAreRefused() {
        ChannelKey backward = TwoRanks.BACKWARD;
        signal(TensorFrame.Type.CREDIT, frame -> frame.channel(backward).taken(3).sequence(3));

        awaitRefusal(FrameRefusal.CREDIT_EXCEEDED);
        assertThat(ranks.receiver.credits(backward)).isEqualTo(2);
    }

    @Test
    void anUnknownVersionOrFlagIsRefused() {
        sendChanged(frame -> buffer.putByte(4, (byte) 9));
        awaitRefusal(FrameRefusal.VERSION);
    }

    @Test
    void aFrameThatDiffersFromItsChecksumIsRefused() {
        sendDamaged();
        awaitRefusal(FrameRefusal.CORRUPT);
        tensorsStillTravel(0, 3);
    }

    @Test
    void aFrameWithoutAChecksumIsRefusedWhereOneIsDue() {
        TensorFrame frame = new TensorFrame();
        frame.begin(buffer, 0, TensorFrame.Type.DATA, RUN, 0, 0).chunk(forward(0), 100, 0, 100);
        send(TensorFrame.HEADER_BYTES + 100);

        awaitRefusal(FrameRefusal.CORRUPT);
        tensorsStillTravel(0, 3);
    }

    @Test
    void requestsForWhatWasNeverSentAreRefused() {
        signal(
                TensorFrame.Type.RESEND,
                frame -> frame.channel(TwoRanks.BACKWARD).place(Long.MAX_VALUE, Long.MAX_VALUE));

        awaitRefusal(FrameRefusal.UNKNOWN_CHANNEL);
        tensorsStillTravelBack();
    }

    @Test
    void requestsForAPlaceBeyondTheTensorSendNothingAgain() {
        tensorsStillTravelBack();
        // with its credit the receiver knows the true sender's session; a stranger's would be taken
        await().atMost(DEADLINE).until(() -> ranks.receiver.credits(TwoRanks.BACKWARD) == 2);
        signal(
                TensorFrame.Type.RESEND,
                frame -> frame.channel(TwoRanks.BACKWARD).place(0, Long.MAX_VALUE));
        signal(TensorFrame.Type.PROBE, frame -> frame.channel(FORWARD).place(1000, 1000));

        tensorsStillTravel(0, 3);
        assertThat(ranks.plane.resentFrames()).isZero();
    }

    private void tensorsStillTravelBack() {
        FrameKey back = new FrameKey(TwoRanks.BACKWARD, 1, 0, 0);
        TwoRanks.offer(ranks.receiver, back, ranks.tensor(1000, 9));
        int slot = TwoRanks.take(ranks.sender, back);
        ranks.sender.release(TwoRanks.BACKWARD, slot);
    }
}
