package dev.penstock.cuda.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.cuda.Devices;
import dev.penstock.cuda.EmulatedGpus;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceCollectives;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.cuda.device.FixedPoint;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.libraries.LibrarySearch;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Three GPUs, each with a thread of its own. */
class NcclTest {
    private static final DeviceSettings GPU = DeviceSettings.DEFAULTS.withKind(Kind.CUDA);
    private static final int MEMBERS = 3;
    private static final int ADDITIONS = 3;

    @TempDir Path folder;
    private final ExecutorService threads = Executors.newFixedThreadPool(MEMBERS);

    @BeforeEach
    void gpus() {
        EmulatedGpus.requireEmulated();
    }

    @AfterEach
    void close() {
        threads.shutdownNow();
    }

    /** What one member does with its tensor, and the result. */
    private interface Work {
        void run(Device device, DeviceCollectives collectives, Tensor tensor);
    }

    @Test
    void allMembersHaveTheSameBitsOfTheSum() throws Exception {
        int elements = 10_001;

        List<float[]> sums =
                together(
                        elements,
                        member -> member,
                        (_, collectives, x) -> done(collectives, collectives.allReduce(x)));

        assertClose(sums.getFirst(), truth(elements), 0, elements);
        assertThat(sums.get(1)).isEqualTo(sums.getFirst());
        assertThat(sums.get(2)).isEqualTo(sums.getFirst());
        assertThat(sums.getFirst())
                .as("in an order of its own")
                .isNotEqualTo(inRankOrder(elements));
    }

    @Test
    void sumsOfIntegersAreExactInWhateverOrder() throws Exception {
        int elements = 1200;
        long[] bounds = {0, 480, 960, elements};

        for (boolean inParts : new boolean[] {false, true}) {
            List<float[]> sums =
                    together(
                            elements,
                            member -> member,
                            (device, collectives, x) -> {
                                Tensor y = device.memory().tensor("y", DType.I64, 1, elements);
                                boolean _ = device.kernels().foldGradient(x, y, 1e4f, false);
                                if (inParts) {
                                    collectives.reduceScatter(y, bounds);
                                    done(collectives, collectives.allGather(y, bounds));
                                } else {
                                    done(collectives, collectives.allReduce(y));
                                }
                                device.kernels().unfoldGradient(y, x);
                            });

            float[] truth = new float[elements];
            for (int i = 0; i < elements; i++) {
                long sum = 0;
                for (int member = 0; member < MEMBERS; member++) {
                    sum += FixedPoint.of(values(member, elements)[i]);
                }
                truth[i] = FixedPoint.value(sum);
            }
            assertThat(sums).allSatisfy(sum -> assertThat(sum).isEqualTo(truth));
        }
    }

    /** Kernels that are enqueued and have not run, as graphs from the second time on. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void whatKernelsMadeIsSummed(boolean graphs) throws Exception {
        int elements = 1000;
        int times = 4;

        List<float[]> sums =
                together(
                        GPU.withGraphs(graphs),
                        elements,
                        member -> member,
                        (device, collectives, x) -> {
                            Tensor y = device.memory().tensor("y", DType.F32, 1, elements);
                            for (int time = 0; time < times; time++) {
                                for (int i = 0; i < ADDITIONS; i++) {
                                    device.kernels().add(x, y);
                                }
                                done(collectives, collectives.allReduce(y));
                            }
                            device.kernels().copy(y, x);
                        });

        double factor = 0;
        for (int time = 0; time < times; time++) {
            factor = MEMBERS * factor + ADDITIONS;
        }
        double[] truth = truth(elements);
        for (int i = 0; i < elements; i++) {
            assertThat(sums.getFirst()[i] / factor).isCloseTo(truth[i], within(1e-5));
        }
        assertThat(sums.get(1)).isEqualTo(sums.getFirst());
        assertThat(sums.get(2)).isEqualTo(sums.getFirst());
    }

    /** Even parts, and parts of which the last is shorter or empty. */
    @ParameterizedTest
    @ValueSource(longs = {40, 48, 60})
    void partsAreSummedForTheirMembersAndGathered(long length) throws Exception {
        int elements = 120;
        long[] bounds =
                IntStream.rangeClosed(0, MEMBERS)
                        .mapToLong(part -> Math.min(elements, part * length))
                        .toArray();

        List<float[]> sums =
                together(
                        elements,
                        member -> member,
                        (_, collectives, x) -> {
                            collectives.reduceScatter(x, bounds);
                            done(collectives, collectives.allGather(x, bounds));
                        });

        for (float[] sum : sums) {
            assertClose(sum, truth(elements), 0, elements);
            assertThat(sum).isEqualTo(sums.getFirst());
        }
    }

    @Test
    void twoMembersOnOneGpuAreRefused() {
        assertThatThrownBy(() -> together(10, member -> member / 2, (_, _, _) -> {}))
                .isInstanceOf(ExecutionException.class)
                .cause()
                .isInstanceOf(DeviceException.class)
                .hasMessageContaining("ncclCommInitRank of 3 members")
                .hasMessageContaining("ncclInvalidUsage");
    }

    /** The others' streams wait for it, and can be released from that. */
    @Test
    void whoLeavesInTheMiddleWaitsForNobody() throws Exception {
        together(
                100,
                member -> member,
                (_, collectives, x) -> {
                    if (collectives.device() != 0) {
                        long begun = collectives.allReduce(x);
                        assertThat(collectives.isDone(begun)).isFalse();
                    }
                });
    }

    /** Like a member whose process died: the library would let the others wait for it. */
    @Test
    void whoNeverLeavesKeepsNobody() throws Exception {
        var othersLeft = new CountDownLatch(MEMBERS - 1);
        byte[] id = newId();
        List<Future<?>> members = new ArrayList<>();
        for (int member = 0; member < MEMBERS; member++) {
            int index = member;
            members.add(
                    threads.submit(
                            () -> {
                                try (Device device = Devices.open(GPU.withGpu(index))) {
                                    try (DeviceCollectives collectives = device.openCollectives()) {
                                        collectives.join(id, MEMBERS, index);
                                        if (index == 0) {
                                            assertThat(othersLeft.await(60, TimeUnit.SECONDS))
                                                    .isTrue();
                                        }
                                    }
                                    othersLeft.countDown();
                                }
                                return null;
                            }));
        }

        for (Future<?> member : members) {
            member.get(90, TimeUnit.SECONDS);
        }
    }

    @Test
    void whatIsMissingOrBrokenIsSaid() throws IOException {
        Path broken = Files.writeString(folder.resolve("libnccl.so.2"), "no library");

        assertThat(Nccl.probe(search(folder.resolve("nowhere"))))
                .isEqualTo(
                        new Nccl.Probe.Missing(
                                "there is no libnccl.so.2 in " + folder.resolve("nowhere")));
        assertThat(Nccl.probe(search(broken)))
                .isInstanceOfSatisfying(
                        Nccl.Probe.Missing.class,
                        missing ->
                                assertThat(missing.reason()).contains(broken + " does not load"));
        assertThat(Nccl.probe())
                .isInstanceOfSatisfying(
                        Nccl.Probe.Found.class,
                        found -> assertThat(found.library().version()).isEqualTo("2.27.3"));
        try (Device cpu = Devices.open(DeviceSettings.DEFAULTS)) {
            assertThatThrownBy(cpu::openCollectives)
                    .isInstanceOf(DeviceException.class)
                    .hasMessageContaining("expected a GPU with NCCL");
        }
    }

    private static LibrarySearch search(Path only) {
        return new LibrarySearch(
                Nccl.NAMES, Nccl.PACKAGES, only.toString(), Path.of("/"), Map.of());
    }

    private List<float[]> together(int elements, IntFunction<Integer> gpu, Work work)
            throws Exception {
        return together(GPU, elements, gpu, work);
    }

    private List<float[]> together(
            DeviceSettings settings, int elements, IntFunction<Integer> gpu, Work work)
            throws Exception {
        byte[] id = newId();
        List<Future<float[]>> members = new ArrayList<>();
        for (int member = 0; member < MEMBERS; member++) {
            int index = member;
            members.add(
                    threads.submit(
                            () -> {
                                try (Device device =
                                                Devices.open(settings.withGpu(gpu.apply(index)));
                                        DeviceCollectives collectives = device.openCollectives()) {
                                    Tensor x = device.memory().tensor("x", DType.F32, 1, elements);
                                    x.write(MemorySegment.ofArray(values(index, elements)));
                                    collectives.join(id, MEMBERS, index);
                                    work.run(device, collectives, x);
                                    return x.contents().toArray(ValueLayout.JAVA_FLOAT);
                                }
                            }));
        }
        List<float[]> results = new ArrayList<>();
        for (Future<float[]> member : members) {
            results.add(member.get(60, TimeUnit.SECONDS));
        }
        return results;
    }

    private static byte[] newId() {
        try (Device device = Devices.open(GPU);
                DeviceCollectives collectives = device.openCollectives()) {
            return collectives.newId();
        }
    }

    private static void done(DeviceCollectives collectives, long number) {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (!collectives.isDone(number)) {
            assertThat(System.nanoTime()).isLessThan(deadline);
            Thread.onSpinWait();
        }
    }

    private static float[] values(int member, int elements) {
        var random = new Random(member);
        float[] values = new float[elements];
        for (int i = 0; i < elements; i++) {
            values[i] = (float) random.nextGaussian();
        }
        return values;
    }

    private static double[] truth(int elements) {
        double[] sum = new double[elements];
        for (int member = 0; member < MEMBERS; member++) {
            float[] values = values(member, elements);
            for (int i = 0; i < elements; i++) {
                sum[i] += values[i];
            }
        }
        return sum;
    }

    private static float[] inRankOrder(int elements) {
        float[] sum = values(0, elements);
        for (int member = 1; member < MEMBERS; member++) {
            float[] values = values(member, elements);
            for (int i = 0; i < elements; i++) {
                sum[i] += values[i];
            }
        }
        return sum;
    }

    private static void assertClose(float[] actual, double[] expected, int from, int to) {
        for (int i = from; i < to; i++) {
            assertThat((double) actual[i]).isCloseTo(expected[i], within(1e-5));
        }
    }
}
