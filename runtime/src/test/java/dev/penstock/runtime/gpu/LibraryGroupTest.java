package dev.penstock.runtime.gpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.actors.collective.CollectiveForm;
import dev.penstock.actors.collective.CollectiveKind;
import dev.penstock.actors.collective.CollectiveLibrary;
import dev.penstock.actors.collective.GroupRole;
import dev.penstock.actors.collective.OpenGroup;
import dev.penstock.actors.collective.RankWaits;
import dev.penstock.actors.collective.ShardMap;
import dev.penstock.actors.collective.library.LibraryGroup;
import dev.penstock.actors.collective.shared.CollectiveRegistry;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.cuda.device.Tensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Three ranks of one process that sum by NCCL, each on a thread of its own. */
class LibraryGroupTest {
    private static final List<Integer> RANKS = List.of(0, 1, 2);
    private static final int ELEMENTS = 5_000;
    private static final String PLACE = "penstock.nccl";

    @TempDir Path nowhere;
    private final CollectiveRegistry registry = new CollectiveRegistry();
    private final ExecutorService threads = Executors.newFixedThreadPool(RANKS.size());
    private String place = "";
    private int epoch;

    @BeforeEach
    void gpus() {
        EmulatedGpus.requireEmulated();
        place = System.getProperty(PLACE, "");
    }

    @AfterEach
    void close() {
        EmulatedGpus.set("SAME_GPU", "");
        System.setProperty(PLACE, place);
        threads.shutdownNow();
    }

    @Test
    void sumsAreTheSameForAllAndByTheLibrary() throws Exception {
        List<float[]> sums = sums(CollectiveLibrary.REQUIRED, false);

        for (float[] sum : sums) {
            assertThat(sum).isEqualTo(sums.getFirst());
        }
        float[] ordered = inRankOrder();
        assertThat(sums.getFirst()).isNotEqualTo(ordered);
        for (int i = 0; i < ELEMENTS; i++) {
            assertThat(sums.getFirst()[i]).isCloseTo(ordered[i], within(1e-5f));
        }
    }

    @Test
    void whereAMemberHasNoGpuOfItsOwnSumsAreInRankOrder() throws Exception {
        for (float[] sum : sums(CollectiveLibrary.WHERE_FOUND, true)) {
            assertThat(sum).isEqualTo(inRankOrder());
        }
        assertThatThrownBy(() -> sums(CollectiveLibrary.REQUIRED, true))
                .cause()
                .isInstanceOf(DeviceException.class)
                .hasMessageContaining(
                        "REPLICAS of ranks [0, 1, 2]: expected NCCL on a GPU of its own")
                .hasMessageContaining("shares GPU 0 with another");
    }

    /** Each of them is GPU 0 or 1 to its process; NCCL would refuse two members on one. */
    @Test
    void processesThatShareAGpuAreFoundOut() throws Exception {
        EmulatedGpus.set("SAME_GPU", "1");

        for (float[] sum : sums(CollectiveLibrary.WHERE_FOUND, false)) {
            assertThat(sum).isEqualTo(inRankOrder());
        }
        assertThatThrownBy(() -> sums(CollectiveLibrary.REQUIRED, false))
                .cause()
                .hasMessageContaining("but rank 1 shares GPU 1 with another");
    }

    @Test
    void withoutTheLibrarySumsAreInRankOrder() throws Exception {
        System.setProperty(PLACE, nowhere.toString());

        for (float[] sum : sums(CollectiveLibrary.WHERE_FOUND, false)) {
            assertThat(sum).isEqualTo(inRankOrder());
        }
        assertThatThrownBy(() -> sums(CollectiveLibrary.REQUIRED, false))
                .cause()
                .isInstanceOf(DeviceException.class)
                .hasMessageContaining("expected NCCL, but there is no libnccl.so.2 in " + nowhere);
    }

    private List<float[]> sums(CollectiveLibrary library, boolean onOneGpu) throws Exception {
        epoch++;
        List<Future<float[]>> members = new ArrayList<>();
        for (int rank : RANKS) {
            members.add(threads.submit(() -> sum(rank, onOneGpu ? 0 : rank, library)));
        }
        List<float[]> sums = new ArrayList<>();
        for (Future<float[]> member : members) {
            sums.add(member.get(60, TimeUnit.SECONDS));
        }
        return sums;
    }

    /** In parts that are gathered then. */
    private float[] sum(int rank, int gpu, CollectiveLibrary library) {
        try (Device device =
                        Devices.open(DeviceSettings.DEFAULTS.withKind(Kind.CUDA).withGpu(gpu));
                DeviceScope scope = device.memory().child("blocks", Long.MAX_VALUE)) {
            Tensor x = device.memory().tensor("x", DType.F32, 1, ELEMENTS);
            x.write(MemorySegment.ofArray(values(rank)));
            var limit = Duration.ofSeconds(30);
            var others =
                    registry.join(
                            epoch,
                            GroupRole.REPLICAS,
                            RANKS,
                            rank,
                            device.kernels(),
                            limit,
                            new Patience());
            try (LibraryGroup group = open(others, device, scope, library)) {
                assertThat(scope.liveBytes()).isEqualTo(LibraryGroup.bytes(RANKS.size()));
                var map = new ShardMap(ELEMENTS, RANKS.size());
                group.await(group.reduceScatter(x, map));
                group.await(group.allGather(x, map));
                for (CollectiveKind kind :
                        List.of(CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_GATHER)) {
                    assertThat(group.sentBytes(kind))
                            .isEqualTo(CollectiveForm.DIRECT.sentBytes(kind, map, rank, 4));
                }
                Tensor token = device.memory().tensor("token", DType.F32, 1, 1);
                group.await(group.allReduce(token)); // nobody leaves before all are done
                return x.contents().toArray(ValueLayout.JAVA_FLOAT);
            }
        }
    }

    private static LibraryGroup open(
            OpenGroup others, Device device, DeviceScope scope, CollectiveLibrary library) {
        try {
            return new LibraryGroup(
                    others,
                    GroupRole.REPLICAS,
                    RANKS,
                    library,
                    device,
                    scope,
                    Duration.ofSeconds(30),
                    new Patience());
        } catch (DeviceException e) {
            others.close();
            throw e;
        }
    }

    private static float[] values(int rank) {
        var random = new Random(rank);
        float[] values = new float[ELEMENTS];
        for (int i = 0; i < ELEMENTS; i++) {
            values[i] = (float) random.nextGaussian();
        }
        return values;
    }

    private static float[] inRankOrder() {
        float[] sum = values(0);
        for (int rank : RANKS.subList(1, RANKS.size())) {
            float[] values = values(rank);
            for (int i = 0; i < ELEMENTS; i++) {
                sum[i] += values[i];
            }
        }
        return sum;
    }

    private static final class Patience implements RankWaits {
        @Override
        public boolean isCalledOff() {
            return false;
        }

        @Override
        public void waitsFor(String what) {}

        @Override
        public void goesOn() {}
    }
}
