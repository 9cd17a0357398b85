package dev.penstock.runtime.model;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.model.shape.Precision;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Nothing is allocated in a steady step beyond a few small objects per kernel. */
class StageAllocationTest {
    /** A vector per row, a segment per score or an operand per tile would each be above this. */
    private static final long FEW_BYTES = 32 * 1024;

    @ParameterizedTest
    @EnumSource(names = {"FLOAT32", "BF16"})
    void anOpOfAWarmStageAllocatesLittle(Precision precision) throws Exception {
        assertThat(bytesPerOp(precision)).isBetween(0L, FEW_BYTES);
    }

    private static long bytesPerOp(Precision precision) throws IOException, InterruptedException {
        List<String> command =
                List.of(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "--add-modules",
                        "jdk.incubator.vector",
                        "--enable-native-access=ALL-UNNAMED",
                        "-cp",
                        System.getProperty("java.class.path"),
                        StageAllocations.class.getName(),
                        precision.name(),
                        Long.toString(FEW_BYTES));
        Process process =
                new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        try (var out = process.inputReader(StandardCharsets.UTF_8)) {
            List<String> lines = out.readAllLines();
            assertThat(process.waitFor()).isZero();
            return Long.parseLong(lines.getLast());
        }
    }
}
