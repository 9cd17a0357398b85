package dev.penstock.cuda.cpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceBuffer;
import dev.penstock.cuda.device.DeviceException;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

class CpuScopeTest {
    private static final long BIG = 5L << 20;

    @Test
    void memoryIsZeroAndAligned() {
        try (DeviceScope scope = CpuScope.root("root", Long.MAX_VALUE, false)) {
            for (long bytes : new long[] {1, 100, 4096, BIG}) {
                DeviceBuffer buffer = scope.allocate("b", bytes);

                assertThat(buffer.address() % 64).isZero();
                assertThat(buffer.segment().byteSize()).isEqualTo(bytes);
                assertThat(buffer.segment().mismatch(MemorySegment.ofArray(new byte[(int) bytes])))
                        .isEqualTo(-1);
            }
        }
    }

    @Test
    void bigBlocksStartOnHugePages() {
        try (DeviceScope scope = CpuScope.root("root", Long.MAX_VALUE, false)) {
            assertThat(scope.allocate("big", BIG).address() % (2 << 20)).isZero();
        }
    }

    @Test
    void childrenCountAgainstTheirParents() {
        try (DeviceScope root = CpuScope.root("root", 1000, false)) {
            try (DeviceScope child = root.child("step", Long.MAX_VALUE)) {
                child.allocate("a", 600);

                assertThat(root.liveBytes()).isEqualTo(600);
                assertThatThrownBy(() -> child.allocate("b", 500))
                        .isInstanceOf(DeviceException.class)
                        .hasMessageContaining("wanted 500 bytes")
                        .hasMessageContaining("'root' has 400 of its 1,000 left");
            }
            assertThat(root.liveBytes()).isZero();
            assertThat(root.peakBytes()).isEqualTo(600);
            assertThatCode(() -> root.allocate("b", 1000)).doesNotThrowAnyException();
        }
    }

    @Test
    void aChildKeepsItsOwnLimit() {
        try (DeviceScope root = CpuScope.root("root", Long.MAX_VALUE, false);
                DeviceScope child = root.child("step", 100)) {
            assertThatThrownBy(() -> child.allocate("a", 101))
                    .hasMessageContaining("scope 'root/step' has 100 of its 100 left");
        }
    }

    @Test
    void closingWithAnOpenChildShowsTheTree() {
        DeviceScope root = CpuScope.root("root", Long.MAX_VALUE, true);
        DeviceScope child = root.child("step", Long.MAX_VALUE);
        child.allocate("activations", 4096);

        assertThatThrownBy(root::close)
                .isInstanceOf(DeviceException.class)
                .hasMessageContaining("scope 'root'")
                .hasMessageContaining("scope 'step' 4,096 bytes")
                .hasMessageContaining("'activations' 4,096 bytes")
                .hasMessageContaining("closingWithAnOpenChildShowsTheTree");

        child.close();
        root.close();
        assertThatCode(root::close).doesNotThrowAnyException();
    }

    @Test
    void useAfterFreeThrows() {
        DeviceScope root = CpuScope.root("root", Long.MAX_VALUE, false);
        Tensor small = root.tensor("small", DType.F32, 2, 2);
        Tensor big = root.tensor("big", DType.F32, 1024, 1024);
        var heldSegment = big.segment();
        root.close();

        assertThatThrownBy(small::address)
                .isInstanceOf(DeviceException.class)
                .hasMessageContaining("use of buffer 'small' of scope 'root'");
        assertThatThrownBy(big::segment).isInstanceOf(DeviceException.class);
        assertThatThrownBy(() -> heldSegment.get(ValueLayout.JAVA_FLOAT, 0))
                .isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(() -> root.allocate("late", 1))
                .hasMessageContaining("expected scope 'root' open");
    }

    @Test
    void emptyBlocksAreRefused() {
        try (DeviceScope root = CpuScope.root("root", Long.MAX_VALUE, false)) {
            assertThatThrownBy(() -> root.allocate("nothing", 0))
                    .hasMessageContaining("expected more than 0 bytes");
        }
    }
}
