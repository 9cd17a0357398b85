package dev.penstock.actors.collective;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.collective.shared.CollectiveRegistry;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.Tensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Pairs of ops of which one computes while the other waits for a sum. */
@Timeout(60)
final class StrandsTest {
    private static final int ELEMENTS = 33;

    private final CollectiveRegistry registry = new CollectiveRegistry();

    /** One of several shards: it has a device, and a group for each half of its pairs. */
    private final class Shard implements AutoCloseable {
        final Device device =
                Devices.open(DeviceSettings.DEFAULTS.withKind(DeviceSettings.Kind.REFERENCE));
        final Strands strands = new Strands("beside");
        final AtomicBoolean calledOff = new AtomicBoolean();
        final List<OpenGroup> opened = new ArrayList<>();
        final List<CollectiveGroup> groups = new ArrayList<>();

        /**
         * @param atOnce whether both halves run at a time
         */
        Shard(int index, int shards, boolean atOnce, Duration limit) {
            for (GroupRole role : List.of(GroupRole.TENSOR, GroupRole.TENSOR_BESIDE)) {
                RankWaits waits = new Waits(calledOff);
                OpenGroup group =
                        registry.join(
                                1,
                                role,
                                IntStream.range(0, shards).boxed().toList(),
                                index,
                                atOnce ? device.sumsBesideOps().orElseThrow() : device.kernels(),
                                limit,
                                atOnce ? strands.waits(waits) : waits);
                opened.add(group);
                groups.add(atOnce ? strands.group(group) : group);
            }
        }

        Tensor tensor(double value) {
            Tensor tensor = device.memory().tensor("addend", DType.F32, 1, ELEMENTS);
            float[] values = new float[ELEMENTS];
            Arrays.fill(values, (float) value);
            tensor.write(MemorySegment.ofArray(values));
            return tensor;
        }

        /** Sums a value in the group of a half. */
        float sum(int half, double value) {
            Tensor tensor = tensor(value);
            CollectiveGroup group = groups.get(half);
            group.await(group.allReduce(tensor));
            return tensor.contents().get(ValueLayout.JAVA_FLOAT, 4L * (ELEMENTS - 1));
        }

        @Override
        public void close() {
            strands.close();
            opened.forEach(OpenGroup::close);
            device.close();
        }
    }

    private record Waits(AtomicBoolean calledOff) implements RankWaits {
        @Override
        public boolean isCalledOff() {
            return calledOff.get();
        }

        @Override
        public void waitsFor(String what) {}

        @Override
        public void goesOn() {}
    }

    /**
     * Shards do the same sums at their own pace, some with both halves at a time, some with one
     * after the other. Sums of a half are numbered, so that any mix-up shows.
     */
    @ParameterizedTest
    @ValueSource(ints = {2, 3, 4})
    void aHalfSumsWithTheSameHalfOfOtherShardsWhateverTheTiming(int shards) throws Exception {
        int pairs = 40;
        AtomicInteger mistakes = new AtomicInteger();
        try (ExecutorService threads = Executors.newFixedThreadPool(shards)) {
            List<Shard> all = new ArrayList<>();
            List<Future<?>> running = new ArrayList<>();
            for (int s = 0; s < shards; s++) {
                all.add(new Shard(s, shards, s != 1, Duration.ofSeconds(30)));
            }
            for (int s = 0; s < shards; s++) {
                int me = s;
                Shard shard = all.get(s);
                var pace = new Random(s);
                running.add(
                        threads.submit(
                                () -> {
                                    for (int pair = 0; pair < pairs; pair++) {
                                        Runnable one = half(shard, me, 0, pair, pace, mistakes);
                                        Runnable other =
                                                half(
                                                        shard,
                                                        me,
                                                        1,
                                                        pair,
                                                        new Random(pair),
                                                        mistakes);
                                        if (me == 1) {
                                            one.run();
                                            other.run();
                                        } else {
                                            shard.strands.run(one, other);
                                        }
                                    }
                                }));
            }
            for (Future<?> each : running) {
                each.get(50, TimeUnit.SECONDS);
            }
            all.forEach(Shard::close);
        }

        assertThat(mistakes).hasValue(0);
    }

    private static Runnable half(
            Shard shard, int index, int half, int pair, Random pace, AtomicInteger mistakes) {
        int sums = 1 + (pair + half) % 3;
        return () -> {
            for (int i = 0; i < sums; i++) {
                for (int turn = pace.nextInt(40); turn > 0; turn--) {
                    Thread.yield();
                }
                int number = 100 * pair + 10 * half + i;
                int shards = shard.groups.get(half).size();
                float sum = shard.sum(half, number + 1000.0 * index);
                float expected = number * shards + 1000f * shards * (shards - 1) / 2;
                mistakes.addAndGet(sum == expected ? 0 : 1);
            }
        };
    }

    /** The other shard does not come before the second half has computed. */
    @Test
    void theSecondHalfComputesWhileTheFirstWaitsForItsSum() throws Exception {
        var computed = new CountDownLatch(1);
        try (ExecutorService thread = Executors.newSingleThreadExecutor();
                Shard here = new Shard(0, 2, true, Duration.ofSeconds(20));
                Shard there = new Shard(1, 2, false, Duration.ofSeconds(20))) {
            Future<Float> other =
                    thread.submit(
                            () -> {
                                computed.await();
                                return there.sum(0, 2);
                            });
            float[] sum = new float[1];

            here.strands.run(() -> sum[0] = here.sum(0, 1), computed::countDown);

            assertThat(sum[0]).isEqualTo(3).isEqualTo(other.get());
        }
    }

    @Test
    void onlyOneHalfComputesAtATime() throws Exception {
        int sums = 50;
        var computing = new AtomicInteger();
        var most = new AtomicInteger();
        try (ExecutorService thread = Executors.newFixedThreadPool(2);
                Shard here = new Shard(0, 2, true, Duration.ofSeconds(20));
                Shard there = new Shard(1, 2, false, Duration.ofSeconds(20))) {
            List<Future<?>> others =
                    IntStream.range(0, 2)
                            .<Future<?>>mapToObj(
                                    half ->
                                            thread.submit(
                                                    () -> {
                                                        for (int i = 0; i < sums; i++) {
                                                            there.sum(half, i);
                                                        }
                                                    }))
                            .toList();

            here.strands.run(
                    () -> compute(here, 0, sums, computing, most),
                    () -> compute(here, 1, sums, computing, most));

            for (Future<?> each : others) {
                each.get(20, TimeUnit.SECONDS);
            }
        }
        assertThat(most).hasValue(1);
    }

    private static void compute(
            Shard shard, int half, int sums, AtomicInteger computing, AtomicInteger most) {
        for (int i = 0; i < sums; i++) {
            most.accumulateAndGet(computing.incrementAndGet(), Math::max);
            Thread.yield();
            computing.decrementAndGet();
            shard.sum(half, i);
        }
    }

    @Test
    void aHalfThatFailsEndsTheOthersWaitAndIsWhatIsThrown() {
        try (Shard here = new Shard(0, 2, true, Duration.ofSeconds(50));
                Shard _ = new Shard(1, 2, false, Duration.ofSeconds(50))) {
            long begun = System.nanoTime();

            assertThatThrownBy(
                            () ->
                                    here.strands.run(
                                            () -> here.sum(0, 1),
                                            () -> {
                                                throw new IllegalStateException("on purpose");
                                            }))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessage("on purpose")
                    .satisfies(
                            e ->
                                    assertThat(e.getSuppressed())
                                            .hasSize(1)
                                            .hasOnlyElementsOfType(DataPlaneException.class));
            assertThat(Duration.ofNanos(System.nanoTime() - begun))
                    .isLessThan(Duration.ofSeconds(40));
        }
    }

    @Test
    void aSecondHalfDoesNotBeginAfterTheFirstHasFailed() {
        var ran = new AtomicBoolean();
        try (Shard here = new Shard(0, 2, true, Duration.ofSeconds(50))) {

            assertThatThrownBy(
                            () ->
                                    here.strands.run(
                                            () -> {
                                                throw new IllegalStateException("on purpose");
                                            },
                                            () -> ran.set(true)))
                    .hasMessage("on purpose");

            assertThat(ran).isFalse();
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    void theDeadlineOfAWaitHoldsInEitherHalf(int half) {
        try (Shard here = new Shard(0, 2, true, Duration.ofMillis(50))) {
            Runnable waiting = () -> here.sum(half, 1);
            Runnable done = () -> {};

            assertThatThrownBy(
                            () ->
                                    here.strands.run(
                                            half == 0 ? waiting : done, half == 0 ? done : waiting))
                    .isInstanceOf(DataPlaneException.class)
                    .hasMessageContaining("rank 0 gave up after")
                    .hasMessageContaining("waits for rank 1");
        }
    }

    @Test
    void aRankThatIsCalledOffLeavesBothHalves() {
        try (Shard here = new Shard(0, 2, true, Duration.ofSeconds(50))) {
            assertThatThrownBy(
                            () ->
                                    here.strands.run(
                                            () -> here.sum(0, 1),
                                            () -> {
                                                here.calledOff.set(true);
                                                here.sum(1, 1);
                                            }))
                    .isInstanceOf(DataPlaneException.class)
                    .hasMessageContaining("called off");
        }
    }
}
