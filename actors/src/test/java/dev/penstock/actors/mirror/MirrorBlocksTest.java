package dev.penstock.actors.mirror;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.Tensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class MirrorBlocksTest {
    private static final List<Integer> SIZES = List.of(1, 5, 12, 3, 40, 7);
    private static final int ELEMENTS = 68;

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 7, 12, 67, 68, 100})
    void whatIsGatheredHereIsScatteredThere(int blockElements) {
        try (Device device = Devices.open(DeviceSettings.DEFAULTS);
                DeviceScope scope = device.memory().child("test", Long.MAX_VALUE)) {
            var from = tensors(scope);
            var to = tensors(scope);
            for (int i = 0, value = 0; i < SIZES.size(); i++) {
                for (int e = 0; e < SIZES.get(i); e++) {
                    from.get(i).tensor().segment().setAtIndex(ValueLayout.JAVA_FLOAT, e, ++value);
                }
            }
            var sending = new MirrorBlocks(from, blockElements, device.kernels());
            var receiving = new MirrorBlocks(to, blockElements, device.kernels());
            var scratch = scope.allocate("scratch", 4L * blockElements);
            var slot = scope.allocate("slot", 4L * blockElements);

            assertThat(sending.count()).isEqualTo((ELEMENTS + blockElements - 1) / blockElements);
            long travelled = 0;
            for (int block = 0; block < sending.count(); block++) {
                Tensor tensor = sending.gather(block, scratch);
                travelled += tensor.elements();
                MemorySegment.copy(tensor.segment(), 0, slot.segment(), 0, tensor.bytes());
                receiving.scatter(block, slot);
            }

            assertThat(travelled).isEqualTo(ELEMENTS);
            assertThat(values(to)).isEqualTo(values(from)).hasSize(ELEMENTS).doesNotContain(0f);
        }
    }

    @Test
    void aBlockHoldsAtMostFourMebibytes() {
        assertThat(MirrorBlocks.blockElements(1000)).isEqualTo(1000);
        assertThat(MirrorBlocks.blockElements(10_000_000)).isEqualTo(1 << 20);
    }

    private static List<NamedTensor> tensors(DeviceScope scope) {
        List<NamedTensor> tensors = new ArrayList<>();
        for (int size : SIZES) {
            int rows = size % 4 == 0 ? 4 : 1;
            tensors.add(
                    new NamedTensor(
                            "t" + size,
                            List.of(size),
                            scope.tensor("t" + size, DType.F32, rows, size / rows)));
        }
        return tensors;
    }

    private static List<Float> values(List<NamedTensor> tensors) {
        List<Float> values = new ArrayList<>();
        for (NamedTensor named : tensors) {
            for (float value : named.tensor().segment().toArray(ValueLayout.JAVA_FLOAT)) {
                values.add(value);
            }
        }
        return values;
    }
}
