package dev.penstock.actors.collective;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.Tensor;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Collectives of members in one process. */
final class SharedMemoryGroupTest extends CollectiveContract {
    private final CollectiveRegistry registry = new CollectiveRegistry();

    @Override
    OpenGroup join(
            int epoch,
            List<Integer> ranks,
            int index,
            long mostElements,
            Device device,
            Duration limit,
            RankWaits waits) {
        return registry.join(epoch, GroupRole.TENSOR, ranks, index, device.kernels(), limit, waits);
    }

    @Test
    void whoLeavesIsNotWaitedForAndItsMemoryIsNotTouched() {
        try (Device device = Devices.open(DeviceSettings.DEFAULTS)) {
            Tensor mine = device.memory().tensor("mine", DType.F32, 1, 64);
            Tensor other = device.memory().tensor("other", DType.F32, 1, 64);
            var ranks = List.of(0, 1);
            OpenGroup first = join(1, ranks, 0, 64, device, Duration.ofSeconds(9), new Waits());
            OpenGroup second = join(1, ranks, 1, 64, device, Duration.ofSeconds(9), new Waits());
            second.allReduce(other);
            second.close();

            assertThatThrownBy(() -> first.await(first.allReduce(mine)))
                    .isInstanceOf(DataPlaneException.class)
                    .hasMessage("rank 1 left the collectives of ranks [0, 1]");
            first.close();
        }
    }

    @Test
    void membersThatDoDifferentThingsAreTold() {
        try (Device device = Devices.open(DeviceSettings.DEFAULTS)) {
            Tensor mine = device.memory().tensor("mine", DType.F32, 1, 64);
            Tensor other = device.memory().tensor("other", DType.F32, 1, 32);
            var ranks = List.of(0, 1);
            OpenGroup first = join(1, ranks, 0, 64, device, Duration.ofSeconds(9), new Waits());
            OpenGroup second = join(1, ranks, 1, 64, device, Duration.ofSeconds(9), new Waits());
            first.allReduce(mine);

            assertThatThrownBy(() -> second.allReduce(other))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessage(
                            "members began different collectives: expected all-reduce of 64 F32, got all-reduce of 32 F32");
        }
    }
}
