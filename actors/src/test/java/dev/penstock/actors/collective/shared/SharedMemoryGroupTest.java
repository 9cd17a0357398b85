package dev.penstock.actors.collective.shared;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.collective.CollectiveContract;
import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.actors.collective.CollectiveKind;
import dev.penstock.actors.collective.GroupRole;
import dev.penstock.actors.collective.OpenGroup;
import dev.penstock.actors.collective.RankWaits;
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
    public long expectedBytes(CollectiveKind kind, long bytes, int members, int member) {
        long onePhase = bytes * (members - 1) / members;
        return kind == CollectiveKind.ALL_REDUCE ? 2 * onePhase : onePhase;
    }

    @Override
    public Joined join(
            int epoch,
            List<Integer> ranks,
            int index,
            Device device,
            Duration limit,
            RankWaits waits) {
        OpenGroup group =
                registry.join(
                        epoch, GroupRole.TENSOR, ranks, index, device.kernels(), limit, waits);
        return new Joined() {
            @Override
            public CollectiveGroup group() {
                return group;
            }

            @Override
            public void close() {
                group.close();
            }
        };
    }

    private OpenGroup member(int index, Device device) {
        return registry.join(
                1,
                GroupRole.TENSOR,
                List.of(0, 1),
                index,
                device.kernels(),
                Duration.ofSeconds(9),
                new Waits());
    }

    @Test
    void whoLeavesIsNotWaitedForAndItsMemoryIsNotTouched() {
        try (Device device = Devices.open(DeviceSettings.DEFAULTS)) {
            Tensor mine = device.memory().tensor("mine", DType.F32, 1, 64);
            Tensor other = device.memory().tensor("other", DType.F32, 1, 64);
            OpenGroup first = member(0, device);
            OpenGroup second = member(1, device);
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
            OpenGroup first = member(0, device);
            OpenGroup second = member(1, device);
            first.allReduce(mine);

            assertThatThrownBy(() -> second.allReduce(other))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessage(
                            "members began different collectives: expected all-reduce of 64 F32,"
                                    + " got all-reduce of 32 F32");
        }
    }
}
