package dev.penstock.actors.spi;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.cuda.cpu.CpuScope;
import dev.penstock.cuda.device.DeviceScope;
import org.junit.jupiter.api.Test;

class MemoryUseTest {
    @Test
    void stagesAreAddedUpAndMirrorsAreOneUseAndKernelsAnother() {
        try (DeviceScope memory = CpuScope.root("cpu", Long.MAX_VALUE, false);
                DeviceScope first = memory.child("stage 0", Long.MAX_VALUE);
                DeviceScope weights = first.child("parameters", Long.MAX_VALUE);
                DeviceScope second = memory.child("stage 2", Long.MAX_VALUE);
                DeviceScope more = second.child("parameters", Long.MAX_VALUE);
                DeviceScope mirror = memory.child("mirror of stage 1", Long.MAX_VALUE);
                DeviceScope mirrored = mirror.child("parameters", Long.MAX_VALUE);
                DeviceScope kernels = memory.child("kernels", Long.MAX_VALUE);
                DeviceScope factor = kernels.child("left factor", Long.MAX_VALUE);
                DeviceScope boundary = memory.child("boundary", Long.MAX_VALUE)) {
            weights.allocate("w", 100);
            more.allocate("w", 20);
            mirrored.allocate("w", 7);
            kernels.allocate("workspace", 40);
            factor.allocate("f", 2);
            try (DeviceScope gone = boundary.child("epoch", Long.MAX_VALUE)) {
                gone.allocate("b", 3);
            }

            assertThat(MemoryUse.of(memory))
                    .containsExactly(
                            new MemoryUse("parameters", 120),
                            new MemoryUse("mirrors", 7),
                            new MemoryUse("kernels", 42),
                            new MemoryUse("boundary", 3));
        }
    }
}
