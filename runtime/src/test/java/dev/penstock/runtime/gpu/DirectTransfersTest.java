package dev.penstock.runtime.gpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.FrameKind;
import dev.penstock.actors.dataplane.FrameListener;
import dev.penstock.actors.dataplane.Inbound;
import dev.penstock.actors.dataplane.OfferResult;
import dev.penstock.actors.dataplane.Outbound;
import dev.penstock.actors.dataplane.direct.DirectTransfers;
import dev.penstock.actors.dataplane.direct.TransferPath;
import dev.penstock.actors.dataplane.direct.TransferRegistry;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.cuda.device.Tensor;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Rank 0 hands tensors to rank 1, each with a GPU and a thread of its own. */
class DirectTransfersTest {
    private static final ChannelKey CHANNEL = new ChannelKey(FrameKind.ACTIVATION, 0, 1);
    private static final int CREDITS = 2;
    private static final int SLOTS = 3;
    private static final int ELEMENTS = 500;
    private static final List<Integer> TOGETHER = List.of(0, 0);
    private static final Duration DEADLINE = Duration.ofMinutes(1);

    private final TransferRegistry registry = new TransferRegistry(true);

    @BeforeEach
    void gpus() {
        EmulatedGpus.requireEmulated();
    }

    @AfterEach
    void noFaults() {
        EmulatedGpus.set("NO_PEERS", "");
        EmulatedGpus.set("COPY_MILLIS", "");
    }

    /** The receiver holds each tensor while the next ones come: a slot too early shows. */
    @Test
    void everyTensorArrivesWholeAndOnce() throws Exception {
        int count = 60;
        EmulatedGpus.set("COPY_MILLIS", "1");
        try (ExecutorService threads = Executors.newFixedThreadPool(2)) {
            Future<Integer> sender = threads.submit((Callable<Integer>) () -> send(count));
            Future<Integer> receiver = threads.submit((Callable<Integer>) () -> receive(count));

            assertThat(receiver.get(2, TimeUnit.MINUTES)).isEqualTo(count);
            assertThat(sender.get(2, TimeUnit.MINUTES)).isEqualTo(count);
        }
    }

    private int send(int count) throws InterruptedException {
        try (Device device = gpu(0);
                DirectTransfers rank = rank(0, new Ears())) {
            rank.send(new Outbound(CHANNEL, 1, CREDITS));
            Tensor one = device.memory().tensor("one", DType.F32, 1, ELEMENTS);
            float[] ones = new float[ELEMENTS];
            Arrays.fill(ones, 1);
            one.write(MemorySegment.ofArray(ones));
            Tensor output = staged(device, "output");
            for (int i = 1; i <= count; i++) {
                device.kernels().add(one, output);
                FrameKey key = key(i);
                until(
                        () ->
                                rank.way(CHANNEL, output) == TransferPath.DIRECT
                                        && rank.offer(key, output).equals(OfferResult.SENT));
            }
            until(() -> taken); // its memory is read by nobody any more
            return count;
        }
    }

    /** Looks again and again, for as long as the other rank may take. */
    private static void until(BooleanSupplier done) throws InterruptedException {
        long start = System.nanoTime();
        while (!done.getAsBoolean()) {
            if (System.nanoTime() - start > DEADLINE.toNanos()) {
                throw new AssertionError("the other rank does nothing for " + DEADLINE);
            }
            Thread.sleep(0, 50_000);
        }
    }

    private volatile boolean taken;

    private int receive(int count) throws InterruptedException {
        try (Device device = gpu(1)) {
            List<DeviceBuffer> slots = slots(device);
            try (DirectTransfers rank = rank(1, new Ears())) {
                rank.receive(inbound(slots), slots);
                int held = -1;
                for (int i = 1; i <= count; i++) {
                    FrameKey key = key(i);
                    var came = new AtomicInteger(-1);
                    until(
                            () -> {
                                came.set(rank.take(key));
                                return came.get() >= 0;
                            });
                    int slot = came.get();
                    assertThat(squaredNorm(device, slots.get(slot)))
                            .isEqualTo((double) i * i * ELEMENTS);
                    if (held >= 0) {
                        assertThat(squaredNorm(device, slots.get(held)))
                                .isEqualTo((i - 1.0) * (i - 1.0) * ELEMENTS);
                        rank.release(CHANNEL, held);
                    }
                    held = slot;
                }
                return count;
            } finally {
                taken = true;
            }
        }
    }

    private static double squaredNorm(Device device, DeviceBuffer slot) {
        return device.kernels().squaredNorm(Tensor.of(slot, DType.F32, 1, ELEMENTS));
    }

    @Test
    void creditsComeBackWithTheTakeAndAreTold() {
        Ears sending = new Ears();
        Ears receiving = new Ears();
        try (Device device = gpu(2);
                DirectTransfers sender = rank(0, sending);
                DirectTransfers receiver = rank(1, receiving)) {
            Tensor output = staged(device, "output");
            sender.send(new Outbound(CHANNEL, 1, CREDITS));
            assertThat(sender.way(CHANNEL, output)).isEqualTo(TransferPath.NOT_KNOWN);
            List<DeviceBuffer> slots = slots(device);
            receiver.receive(inbound(slots), slots);
            assertThat(sender.way(CHANNEL, output)).isEqualTo(TransferPath.DIRECT);

            deliver(sender, 1, output);
            deliver(sender, 2, output);
            assertThat(receiving.frames.get()).isEqualTo(2);
            assertThat(sender.offer(key(3), output)).isEqualTo(OfferResult.NO_CREDIT);
            assertThat(receiver.take(key(7))).isNegative();
            assertThat(sending.credits.get()).isZero();
            int slot = receiver.take(key(2));
            assertThat(sending.credits.get()).isEqualTo(1);
            deliver(sender, 3, output);
            receiver.take(key(1));
            assertThat(sender.offer(key(4), output)).as("no slot").isEqualTo(OfferResult.NO_CREDIT);
            receiver.release(CHANNEL, slot);
            assertThat(sending.credits.get()).isEqualTo(2);
            deliver(sender, 4, output);
            receiver.take(key(4));
            receiver.release(CHANNEL, slot);
            assertThatThrownBy(() -> receiver.release(CHANNEL, slot))
                    .isInstanceOf(DataPlaneException.class)
                    .hasMessageContaining("released twice");
        }
    }

    private static void deliver(DirectTransfers sender, int number, Tensor output) {
        OfferResult answer = sender.offer(key(number), output);
        while (answer.equals(OfferResult.BACK_PRESSURED)) {
            Thread.onSpinWait();
            answer = sender.offer(key(number), output);
        }
        assertThat(answer).isEqualTo(OfferResult.SENT);
    }

    @Test
    void otherTensorsGoThroughTheDataPlane() {
        try (Device one = gpu(0);
                Device two = gpu(1);
                Device cpu = Devices.open(DeviceSettings.DEFAULTS);
                DirectTransfers sender = rank(0, new Ears());
                DirectTransfers receiver = rank(1, new Ears());
                DirectTransfers apart =
                        new DirectTransfers(registry, 0, 1, List.of(0, 1), new Ears())) {
            List<DeviceBuffer> slots = slots(two);
            sender.send(new Outbound(CHANNEL, 1, CREDITS));
            apart.send(new Outbound(CHANNEL, 1, CREDITS));
            receiver.receive(inbound(slots), slots);
            EmulatedGpus.set("NO_PEERS", "1");

            assertThat(sender.way(CHANNEL, staged(cpu, "output")))
                    .isEqualTo(TransferPath.DATA_PLANE);
            assertThat(apart.way(CHANNEL, staged(one, "output")))
                    .isEqualTo(TransferPath.DATA_PLANE);
            assertThat(sender.way(CHANNEL, staged(one, "output")))
                    .isEqualTo(TransferPath.DATA_PLANE);
            assertThat(receiver.bring(CHANNEL)).isFalse();
        }
    }

    @Test
    void nothingIsCopiedToAReceiverThatLeft() {
        try (Device device = gpu(0);
                DirectTransfers sender = rank(0, new Ears())) {
            Tensor output = staged(device, "output");
            sender.send(new Outbound(CHANNEL, 1, CREDITS));
            try (DirectTransfers receiver = rank(1, new Ears())) {
                List<DeviceBuffer> slots = slots(device);
                receiver.receive(inbound(slots), slots);
                deliver(sender, 1, output);
            }

            assertThat(sender.offer(key(2), output)).isEqualTo(OfferResult.NOT_CONNECTED);
        }
    }

    private DirectTransfers rank(int rank, FrameListener listener) {
        return new DirectTransfers(registry, rank, 0, TOGETHER, listener);
    }

    private static Inbound inbound(List<DeviceBuffer> slots) {
        return new Inbound(CHANNEL, 0, CREDITS, slots.stream().map(DeviceBuffer::staging).toList());
    }

    private static List<DeviceBuffer> slots(Device device) {
        return IntStream.range(0, SLOTS)
                .mapToObj(i -> device.memory().allocateStaged("slot " + i, 4L * ELEMENTS))
                .toList();
    }

    private static Tensor staged(Device device, String name) {
        return Tensor.of(
                device.memory().allocateStaged(name, 4L * ELEMENTS), DType.F32, 1, ELEMENTS);
    }

    private static Device gpu(int gpu) {
        return Devices.open(DeviceSettings.DEFAULTS.withKind(Kind.CUDA).withGpu(gpu));
    }

    private static FrameKey key(int number) {
        return new FrameKey(CHANNEL, number, 0, 0);
    }

    private static final class Ears implements FrameListener {
        private final AtomicInteger frames = new AtomicInteger();
        private final AtomicInteger credits = new AtomicInteger();

        @Override
        public void onFrame(FrameKey key) {
            frames.incrementAndGet();
        }

        @Override
        public void onCredit(ChannelKey channel) {
            credits.incrementAndGet();
        }

        @Override
        public void onFailure(DataPlaneException failure) {
            throw failure;
        }
    }
}
