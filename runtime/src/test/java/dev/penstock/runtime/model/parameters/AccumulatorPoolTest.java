package dev.penstock.runtime.model.parameters;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.collective.GroupRole;
import dev.penstock.actors.collective.OpenGroup;
import dev.penstock.actors.collective.RankWaits;
import dev.penstock.actors.collective.shared.CollectiveRegistry;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.model.shape.Sharding;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

class AccumulatorPoolTest {
    private static final int BLOCK = 64;
    private static final int HEAD = 32;
    private static final Sharding FIRST_OF_TWO = new Sharding(2, 2, 0);

    private final CollectiveRegistry registry = new CollectiveRegistry();

    /**
     * The other replica has summed the block, found room for its next stage with that, and may be
     * where it waits for a shard that waits for this one: it does not go on with the head.
     */
    @Test
    void roomIsThereAsSoonAsWhatIsWantedWasSummedWhateverElseIs() {
        try (Device device =
                Devices.open(DeviceSettings.DEFAULTS.withKind(DeviceSettings.Kind.REFERENCE))) {
            OpenGroup here = member(0, device.kernels());
            OpenGroup other = member(1, device.kernels());
            var needs = new RowPool.Needs();
            needs.together(
                    List.of(new RowPool.Kind(DType.F32, BLOCK), new RowPool.Kind(DType.F32, HEAD)));
            var pool = new AccumulatorPool(new RowPool(device.memory(), "accumulator", needs));
            GroupGradient block = gradient(device, "block", BLOCK);
            GroupGradient head = gradient(device, "head", HEAD);
            GroupGradient nextBlock = gradient(device, "next block", BLOCK);

            pool.open(List.of(block, head), here);
            Collective sum =
                    GradientReducer.reduce(
                            List.of(
                                    block.reduction(device.kernels(), pool, 1),
                                    head.reduction(device.kernels(), pool, 1)),
                            here,
                            true);
            pool.underWay(sum);
            Tensor others = device.memory().tensor("other's block", DType.F32, 1, BLOCK);
            other.reduceScatter(others, FIRST_OF_TWO.map(BLOCK));

            pool.open(List.of(nextBlock), here);

            assertThat(nextBlock.isOpen()).isTrue();
            assertThat(block.isOpen()).isFalse();
            assertThat(head.isOpen()).isTrue();
            assertThat(sum.advance()).isFalse();
            other.close();
        }
    }

    private static GroupGradient gradient(Device device, String name, int elements) {
        long part = FIRST_OF_TWO.held(elements).count();
        return new GroupGradient(
                new GroupBuffer(name),
                device.memory().tensor("part of " + name, DType.F32, 1, Math.toIntExact(part)),
                FIRST_OF_TWO,
                elements,
                null,
                null);
    }

    private OpenGroup member(int index, Kernels kernels) {
        return registry.join(
                1,
                GroupRole.REPLICAS,
                List.of(0, 1),
                index,
                kernels,
                Duration.ofSeconds(2),
                new RankWaits() {
                    @Override
                    public boolean isCalledOff() {
                        return false;
                    }

                    @Override
                    public void waitsFor(String what) {}

                    @Override
                    public void goesOn() {}
                });
    }
}
