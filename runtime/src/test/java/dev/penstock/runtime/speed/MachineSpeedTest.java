package dev.penstock.runtime.speed;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.config.run.DeviceKind;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class MachineSpeedTest {
    private static final DeviceSettings ONE_THREAD =
            MachineSpeed.settings(DeviceKind.CPU).withThreads(1);

    @TempDir Path folder;

    @Test
    void everyPartHasFiguresAndALine() throws IOException {
        List<String> lines = new ArrayList<>();

        SpeedReport report =
                new MachineSpeed(ONE_THREAD, folder.resolve("no/runs yet"), 1, 120, lines::add)
                        .measure();

        assertThat(report.missing()).isEmpty();
        assertThat(lines).hasSize(5).allMatch(line -> line.endsWith(" s"));
        assertThat(report.device()).contains("1 thread");
        assertThat(report.products())
                .extracting(SpeedReport.Product::precision)
                .containsExactly("float32", "bf16", "float32", "bf16");
        assertThat(report.products()).allMatch(product -> product.flopsPerSecond() > 0);
        assertThat(report.memoryBytesPerSecond()).isPositive();
        assertThat(report.links())
                .extracting(LinkRate::bytes)
                .containsExactly(4 << 10, 256 << 10, 3 << 20);
        assertThat(report.links())
                .allMatch(link -> link.bytesPerSecond() > 0 && link.microseconds() > 0);
        DiskRate disk = report.disk().orElseThrow();
        assertThat(disk.writtenBytesPerSecond()).isPositive();
        assertThat(disk.readBytesPerSecond()).isPositive();
        assertThat(disk.syncMicroseconds()).isPositive();
        assertThat(report.estimates()).hasSize(4);
        try (var left = Files.list(folder)) {
            assertThat(left).isEmpty();
        }
    }

    @Test
    void aPartWithoutTimeIsNamedAndTheOthersGoOn() {
        SpeedReport report =
                new MachineSpeed(ONE_THREAD, Path.of("target"), 1, 0, _ -> {}).measure();

        assertThat(report.missing())
                .extracting(SpeedReport.Missing::part)
                .containsExactly(
                        "products of quickstart",
                        "products of gpt2-124m",
                        "memory",
                        "links",
                        "disk");
        assertThat(report.missing()).allMatch(part -> part.reason().contains("within 0 s"));
        assertThat(report.estimates()).isEmpty();
    }
}
