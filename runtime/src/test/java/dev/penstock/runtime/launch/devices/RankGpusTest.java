package dev.penstock.runtime.launch.devices;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceLostException;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.cuda.device.Gpus;
import dev.penstock.runtime.config.run.DeviceKind;
import dev.penstock.runtime.gpu.EmulatedGpus;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Optional;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Which GPUs ranks get on a machine of four, before and after some are lost. */
class RankGpusTest {
    private static final DeviceSettings CUDA = DeviceSettings.DEFAULTS.withKind(Kind.CUDA);

    @TempDir Path directory;

    @BeforeEach
    void gpus() {
        EmulatedGpus.requireEmulated();
    }

    @Test
    void ranksTakeGpusInTurn() {
        assertThat(gpuOf(1, inTurn(2))).startsWith("cuda:1 ");
        assertThat(gpuOf(5, inTurn(6))).startsWith("cuda:1 ");
    }

    @Test
    void aLostGpuIsNotGivenAgainAndOneThatNobodyHasTakesItsPlace() {
        loses(inTurn(2), 1, true);

        assertThat(gpuOf(1, inTurn(2))).startsWith("cuda:3 ");
        assertThat(gpuOf(0, inTurn(2))).startsWith("cuda:0 ");
    }

    @Test
    void whereAllAreTakenALostOnesRankSharesOne() {
        loses(inTurn(4), 1, true);

        assertThat(gpuOf(1, inTurn(4))).startsWith("cuda:2 ");
    }

    /** It is this process that cannot go on with it. */
    @Test
    void aGpuWhoseKernelFailedIsGivenToTheNextProcess() {
        loses(inTurn(2), 1, false);

        assertThat(gpuOf(1, inTurn(2))).startsWith("cuda:1 ");
    }

    @Test
    void theOnlyGpuThatIsWantedIsRefusedOnceItIsLostWithTheReason() {
        loses(only(2), 0, true);

        assertThatThrownBy(() -> only(2).open(0))
                .isInstanceOf(DeviceException.class)
                .hasMessageContaining("opening device cuda:2")
                .hasMessageContaining("rank 0: it fell off the bus")
                .hasMessageContaining("remove " + directory.resolve("lost-gpus.txt"));
    }

    @Test
    void anotherRunHasThemAll() {
        Gpus.Gpu gpu = Devices.gpus().get(1);
        new LostGpus(directory).add(gpu, Instant.now(), "two\nlines");

        assertThat(new LostGpus(directory).find(gpu))
                .hasValueSatisfying(why -> assertThat(why).endsWith("two"));
        assertThat(new LostGpus(directory).find(Devices.gpus().get(2))).isEmpty();
        assertThat(new LostGpus(directory.resolve("other")).find(gpu)).isEmpty();
    }

    private RankGpus inTurn(int ranks) {
        return gpus("cuda", ranks);
    }

    private RankGpus only(int gpu) {
        return gpus("cuda:" + gpu, 2);
    }

    /** Of a process of its own each. */
    private RankGpus gpus(String kind, int ranks) {
        return new RankGpus(
                new DeviceKind(kind), CUDA, ranks, Optional.of(new LostGpus(directory)));
    }

    private static String gpuOf(int rank, RankGpus gpus) {
        try (Device device = gpus.open(rank)) {
            return device.name();
        }
    }

    private static void loses(RankGpus gpus, int rank, boolean gone) {
        gpuOf(rank, gpus);
        var loss = new DeviceLostException("lost", gone, new IllegalStateException());
        gpus.onLost(rank, loss, "rank %d: it fell off the bus".formatted(rank));
    }
}
