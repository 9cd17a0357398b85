package dev.penstock.actors.collective;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.Tensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What every transport of collectives does, with a thread and a device for each member. */
@Timeout(120)
public abstract class CollectiveContract {
    private static final Duration LONG = Duration.ofSeconds(60);
    private static final DeviceSettings ONE_THREAD =
            new DeviceSettings(
                    DeviceSettings.Kind.CPU,
                    1,
                    DeviceSettings.Gemm.JAVA,
                    0,
                    0,
                    Long.MAX_VALUE,
                    false,
                    false);

    private static final float[] POWERS_OF_TEN = {
        1e-9f, 1e-8f, 1e-7f, 1e-6f, 1e-5f, 1e-4f, 1e-3f, 1e-2f
    };

    /** What a member does. */
    public interface Part {
        void run(CollectiveGroup group, Device device) throws Exception;
    }

    /** A membership, ended by its owner. */
    public interface Joined extends AutoCloseable {
        CollectiveGroup group();

        @Override
        void close();
    }

    /** Members that are on their way; a later test's are another epoch. */
    public abstract Joined join(
            int epoch,
            List<Integer> ranks,
            int index,
            Device device,
            Duration limit,
            RankWaits waits);

    private int epochs;

    public static final class Waits implements RankWaits {
        final AtomicBoolean calledOff = new AtomicBoolean();
        volatile String told = "";

        @Override
        public boolean isCalledOff() {
            return calledOff.get();
        }

        @Override
        public void waitsFor(String what) {
            told = what;
        }

        @Override
        public void goesOn() {}
    }

    public void together(int members, Part part) throws Exception {
        together(members, LONG, new Waits(), part);
    }

    /** Throws what failed first; the others are called off. */
    private void together(int members, Duration limit, Waits waits, Part part) throws Exception {
        int epoch = ++epochs;
        List<Integer> ranks = IntStream.range(2, 2 + members).boxed().toList();
        var open = new CyclicBarrier(members);
        var done = new CountDownLatch(members);
        var failure = new AtomicReference<@Nullable Throwable>();
        try (ExecutorService threads = Executors.newFixedThreadPool(members)) {
            for (int i = 0; i < members; i++) {
                int index = i;
                threads.execute(
                        () -> {
                            try (Device device = Devices.open(ONE_THREAD);
                                    var joined = join(epoch, ranks, index, device, limit, waits)) {
                                open.await(20, TimeUnit.SECONDS);
                                part.run(joined.group(), device);
                                done.countDown();
                                // who is done may still have to answer others
                                boolean _ = done.await(LONG.toSeconds(), TimeUnit.SECONDS);
                            } catch (Exception | AssertionError e) {
                                failure.compareAndSet(null, e);
                                waits.calledOff.set(true);
                                while (done.getCount() > 0) {
                                    done.countDown();
                                }
                            }
                        });
            }
        }
        switch (failure.get()) {
            case null -> {}
            case Exception e -> throw e;
            case Throwable e -> throw new AssertionError(e);
        }
    }

    private static Tensor filled(Device device, int elements, int member, int salt) {
        Tensor tensor = device.memory().tensor("t" + salt, DType.F32, 1, elements);
        fill(tensor, member, salt);
        return tensor;
    }

    private static void fill(Tensor tensor, int member, int salt) {
        float[] values = values((int) tensor.elements(), member, salt);
        for (int i = 0; i < values.length; i++) {
            tensor.segment().setAtIndex(ValueLayout.JAVA_FLOAT, i, values[i]);
        }
    }

    /** Of very different sizes, so that the order of a sum matters. */
    private static float[] values(int elements, int member, int salt) {
        var random = new SplittableRandom(31L * member + salt);
        float[] values = new float[elements];
        for (int i = 0; i < elements; i++) {
            long bits = random.nextLong();
            values[i] = (int) bits * POWERS_OF_TEN[(int) (bits >>> 32) & 7];
        }
        return values;
    }

    private static float[] sum(int elements, int members, int salt) {
        float[] sum = values(elements, 0, salt);
        for (int member = 1; member < members; member++) {
            float[] more = values(elements, member, salt);
            for (int i = 0; i < elements; i++) {
                sum[i] += more[i];
            }
        }
        return sum;
    }

    private static float[] read(Tensor tensor) {
        return tensor.segment().toArray(ValueLayout.JAVA_FLOAT);
    }

    private static void assertPart(Tensor tensor, float[] expected, long from, long to) {
        float[] got = read(tensor);
        for (int i = (int) from; i < to; i++) {
            if (Float.floatToRawIntBits(got[i]) != Float.floatToRawIntBits(expected[i])) {
                throw new AssertionError(
                        "element %d: expected %s, got %s".formatted(i, expected[i], got[i]));
            }
        }
    }

    @ParameterizedTest
    @CsvSource({
        "1, 2",
        "15, 3",
        "16, 2",
        "17, 4",
        "1000, 3",
        "1000, 4",
        "999, 5",
        "4097, 6",
        "100003, 7",
        "65, 8",
        "3000000, 2",
        "3000000, 4"
    })
    void sumsAreThoseOfOneWhoAddsInMemberOrder(int elements, int members) throws Exception {
        float[] expected = sum(elements, members, 5);

        together(
                members,
                (group, device) -> {
                    Tensor whole = filled(device, elements, group.index(), 5);
                    group.await(group.allReduce(whole));
                    assertPart(whole, expected, 0, elements);

                    var map = new ShardMap(elements, members);
                    fill(whole, group.index(), 5);
                    group.await(group.reduceScatter(whole, map));
                    assertPart(whole, expected, map.from(group.index()), map.to(group.index()));

                    group.await(group.allGather(whole, map));
                    assertPart(whole, expected, 0, elements);
                });
    }

    @ParameterizedTest
    @CsvSource({"1, 2", "17, 4", "1000, 3", "3000000, 2"})
    void onePartMayHaveEverything(int elements, int members) throws Exception {
        float[] expected = sum(elements, members, 5);

        together(
                members,
                (group, device) -> {
                    for (int owner = 0; owner < members; owner++) {
                        var map = ShardMap.of(owner, elements, members);
                        Tensor whole = filled(device, elements, group.index(), 5);
                        group.await(group.reduceScatter(whole, map));
                        if (group.index() == owner) {
                            assertPart(whole, expected, 0, elements);
                        }
                        group.await(group.allGather(whole, map));
                        assertPart(whole, expected, 0, elements);
                    }
                });
    }

    /** Of numbers whose sums are too long for floats, and for doubles. */
    @ParameterizedTest
    @CsvSource({"1, 2", "17, 4", "1000, 3", "65, 8", "300001, 5", "1500000, 2"})
    void sumsOfIntegersAreExact(int elements, int members) throws Exception {
        long[] expected = new long[elements];
        for (int member = 0; member < members; member++) {
            long[] more = longs(elements, member);
            for (int i = 0; i < elements; i++) {
                expected[i] = Math.addExact(expected[i], more[i]);
            }
        }

        together(
                members,
                (group, device) -> {
                    Tensor whole = device.memory().tensor("longs", DType.I64, 1, elements);
                    MemorySegment values = whole.segment();
                    values.copyFrom(MemorySegment.ofArray(longs(elements, group.index())));
                    group.await(group.allReduce(whole));
                    assertThat(values.toArray(ValueLayout.JAVA_LONG)).isEqualTo(expected);

                    var map = new ShardMap(elements, members);
                    values.copyFrom(MemorySegment.ofArray(longs(elements, group.index())));
                    long before = group.sentBytes(CollectiveKind.REDUCE_SCATTER);
                    group.await(group.reduceScatter(whole, map));
                    for (long i = map.from(group.index()); i < map.to(group.index()); i++) {
                        assertThat(values.getAtIndex(ValueLayout.JAVA_LONG, i))
                                .isEqualTo(expected[(int) i]);
                    }
                    assertThat(group.sentBytes(CollectiveKind.REDUCE_SCATTER) - before)
                            .isEqualTo(
                                    form().sentBytes(
                                                    CollectiveKind.REDUCE_SCATTER,
                                                    map,
                                                    group.index(),
                                                    8));

                    group.await(group.allGather(whole, map));
                    assertThat(values.toArray(ValueLayout.JAVA_LONG)).isEqualTo(expected);
                });
    }

    private static long[] longs(int elements, int member) {
        return new SplittableRandom(member).longs(elements).map(bits -> bits >> 4).toArray();
    }

    /** Bytes that a member sends, of S bytes in equal parts; the sizes are multiples of them. */
    public abstract long expectedBytes(CollectiveKind kind, long bytes, int members, int member);

    @ParameterizedTest
    @ValueSource(ints = {2, 3, 4, 5, 8})
    void eachSendsWhatTheFormulaSays(int members) throws Exception {
        int elements = members * 16 * 25;

        together(
                members,
                (group, device) -> {
                    Tensor whole = filled(device, elements, group.index(), 1);
                    var map = new ShardMap(elements, members);
                    group.await(group.reduceScatter(whole, map));
                    group.await(group.allGather(whole, map));
                    group.await(group.allReduce(whole));
                    group.await(group.allReduce(whole));
                    for (CollectiveKind kind : CollectiveKind.values()) {
                        int times = kind == CollectiveKind.ALL_REDUCE ? 2 : 1;
                        assertThat(group.sentBytes(kind))
                                .as("%s, member %d", kind, group.index())
                                .isEqualTo(
                                        kind == CollectiveKind.PASS
                                                ? 0
                                                : times
                                                        * expectedBytes(
                                                                kind,
                                                                4L * elements,
                                                                members,
                                                                group.index()));
                    }
                });
    }

    /** Parts of unlike sizes, some of them empty, and the formula that plans are made with. */
    @ParameterizedTest
    @CsvSource({"1, 2", "17, 4", "1000, 3", "300001, 5"})
    void sizesThatNobodyDividesAreCountedAsPlanned(int elements, int members) throws Exception {
        CollectiveForm form = form();

        together(
                members,
                (group, device) -> {
                    Tensor whole = filled(device, elements, group.index(), 1);
                    var map = new ShardMap(elements, members);
                    group.await(group.reduceScatter(whole, map));
                    group.await(group.allGather(whole, map));
                    group.await(group.allReduce(whole));
                    for (CollectiveKind kind :
                            List.of(
                                    CollectiveKind.REDUCE_SCATTER,
                                    CollectiveKind.ALL_GATHER,
                                    CollectiveKind.ALL_REDUCE)) {
                        assertThat(group.sentBytes(kind))
                                .as("%s, member %d", kind, group.index())
                                .isEqualTo(form.sentBytes(kind, map, group.index(), 4));
                    }
                });
    }

    /** In which the members of this transport sum and gather. */
    public CollectiveForm form() {
        return CollectiveForm.DIRECT;
    }

    @ParameterizedTest
    @CsvSource({"1, 2", "17, 3", "1000, 4", "1300000, 2", "1300000, 3"})
    void whatIsPassedOnVisitsEverybodyAndComesHome(int elements, int members) throws Exception {
        together(
                members,
                (group, device) -> {
                    Tensor here = filled(device, elements, group.index(), 7);
                    Tensor other = device.memory().tensor("other", DType.F32, 1, elements);
                    for (int hop = 1; hop <= members; hop++) {
                        Collective pass = group.pass(here, other);
                        if (hop % 2 == group.index() % 2) {
                            LockSupport.parkNanos(1_000_000);
                        }
                        group.await(pass);
                        int from = (group.index() + members - hop) % members;
                        assertPart(other, values(elements, from, 7), 0, elements);
                        Tensor before = here;
                        here = other;
                        other = before;
                        fill(other, 99, 0);
                    }
                    assertThat(group.sentBytes()).isEqualTo(4L * elements * members);
                });
    }

    @Test
    void passesGoOnBesideEachOtherAndBesideSums() throws Exception {
        int elements = 400_000;

        together(
                3,
                (group, device) -> {
                    Tensor one = filled(device, elements, group.index(), 1);
                    Tensor two = filled(device, elements, group.index(), 2);
                    Tensor sum = filled(device, elements, group.index(), 3);
                    Tensor first = device.memory().tensor("first", DType.F32, 1, elements);
                    Tensor second = device.memory().tensor("second", DType.F32, 1, elements);
                    int previous = (group.index() + 2) % 3;
                    for (int round = 0; round < 5; round++) {
                        fill(sum, group.index(), 3);
                        Collective passOne = group.pass(one, first);
                        Collective add = group.allReduce(sum);
                        Collective passTwo = group.pass(two, second);
                        if (round % 3 == group.index()) {
                            LockSupport.parkNanos(3_000_000);
                        }
                        List.of(passTwo, passOne, add).forEach(group::await);
                        assertPart(first, values(elements, previous, 1), 0, elements);
                        assertPart(second, values(elements, previous, 2), 0, elements);
                        assertPart(sum, sum(elements, 3, 3), 0, elements);
                        fill(first, 99, 0);
                        fill(second, 99, 0);
                    }
                });
    }

    @Test
    void whoeverHasNothingPassedToItSaysFromWhomItWaits() {
        assertThatThrownBy(
                        () ->
                                together(
                                        3,
                                        Duration.ofMillis(300),
                                        new Waits(),
                                        (group, device) -> {
                                            Tensor here = filled(device, 64, group.index(), 1);
                                            Tensor other = filled(device, 64, group.index(), 2);
                                            if (group.index() == 1) {
                                                group.await(group.pass(here, other));
                                            }
                                        }))
                .isInstanceOf(DataPlaneException.class)
                .hasMessageMatching(
                        "rank 3 gave up after 0\\.\\d s: "
                                + "pass 0 of ranks \\[2, 3, 4] waits for rank 2");
    }

    @Test
    void severalUnderWayAreAwaitedInAnyOrderByMembersOfUnlikeSpeed() throws Exception {
        int elements = 5000;

        together(
                3,
                (group, device) -> {
                    Tensor first = filled(device, elements, group.index(), 1);
                    Tensor second = filled(device, elements, group.index(), 2);
                    Tensor third = filled(device, elements, group.index(), 3);
                    var map = new ShardMap(elements, 3);
                    for (int round = 0; round < 20; round++) {
                        fill(first, group.index(), 1);
                        fill(second, group.index(), 2);
                        if (round % 3 == group.index()) {
                            LockSupport.parkNanos(3_000_000);
                        }
                        Collective one = group.allReduce(first);
                        Collective two = group.reduceScatter(second, map);
                        Collective three = group.allGather(third, map);
                        List<Collective> order =
                                group.index() == 1
                                        ? List.of(three, two, one)
                                        : List.of(one, two, three);
                        order.forEach(group::await);
                        assertPart(first, sum(elements, 3, 1), 0, elements);
                        long from = map.from(group.index());
                        assertPart(second, sum(elements, 3, 2), from, map.to(group.index()));
                        assertPart(third, values(elements, 0, 3), map.from(0), map.to(0));
                        assertPart(third, values(elements, 2, 3), map.from(2), map.to(2));
                    }
                });
    }

    @Test
    void advancingNeverBlocksAndGetsThereToo() throws Exception {
        int elements = 300_000;
        float[] expected = sum(elements, 2, 9);

        together(
                2,
                (group, device) -> {
                    Tensor whole = filled(device, elements, group.index(), 9);
                    Collective sum = group.allReduce(whole);
                    while (!sum.advance()) {
                        LockSupport.parkNanos(10_000);
                    }
                    assertPart(whole, expected, 0, elements);
                });
    }

    @Test
    void bytesOfAnyTypeAreGathered() throws Exception {
        together(
                2,
                (group, device) -> {
                    Tensor whole = device.memory().tensor("halves", DType.BF16, 1, 1001);
                    var map = new ShardMap(1001, 2);
                    for (long i = map.from(group.index()); i < map.to(group.index()); i++) {
                        whole.segment().setAtIndex(ValueLayout.JAVA_SHORT, i, (short) (i * 7));
                    }
                    group.await(group.allGather(whole, map));
                    for (int i = 0; i < 1001; i++) {
                        assertThat(whole.segment().getAtIndex(ValueLayout.JAVA_SHORT, i))
                                .isEqualTo((short) (i * 7));
                    }
                });
    }

    @Test
    void aWaitEndsAtItsDeadlineAndSaysWhoDidNotCome() {
        var waits = new Waits();

        assertThatThrownBy(
                        () ->
                                together(
                                        2,
                                        Duration.ofMillis(300),
                                        waits,
                                        (group, device) -> {
                                            Tensor whole = filled(device, 64, group.index(), 1);
                                            if (group.index() == 0) {
                                                group.await(group.allReduce(whole));
                                            }
                                        }))
                .isInstanceOf(DataPlaneException.class)
                .hasMessageMatching(
                        "rank 2 gave up after 0\\.\\d s: "
                                + "all-reduce 0 of ranks \\[2, 3] waits for rank 3");
        assertThat(waits.told).isEqualTo("all-reduce 0 of ranks [2, 3] waits for rank 3");
    }

    @Test
    void aWaitEndsWhenTheRankIsCalledOff() {
        var waits = new Waits();

        assertThatThrownBy(
                        () ->
                                together(
                                        2,
                                        LONG,
                                        waits,
                                        (group, device) -> {
                                            Tensor whole = filled(device, 64, group.index(), 1);
                                            if (group.index() == 0) {
                                                group.await(group.allReduce(whole));
                                            } else {
                                                LockSupport.parkNanos(200_000_000);
                                                waits.calledOff.set(true);
                                            }
                                        }))
                .isInstanceOf(DataPlaneException.class)
                .hasMessage("rank 2: called off; all-reduce 0 of ranks [2, 3] waits for rank 3");
    }
}
