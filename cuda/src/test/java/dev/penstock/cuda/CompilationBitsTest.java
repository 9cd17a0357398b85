package dev.penstock.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The same bits interpreted, compiled by C1 and compiled by C2. */
class CompilationBitsTest {
    private static final int HOT = 100;

    @ParameterizedTest
    @ValueSource(ints = {512, 256})
    void bitsDoNotDependOnTheCompiler(int vectorBits) throws Exception {
        List<String> interpreted = kernelBits(vectorBits, 1, "-Xint");

        assertThat(interpreted).hasSize(4).allMatch(line -> line.contains("d head="));
        assertThat(kernelBits(vectorBits, 3, "-XX:TieredStopAtLevel=1")).isEqualTo(interpreted);
        assertThat(kernelBits(vectorBits, HOT)).isEqualTo(interpreted);
    }

    private static List<String> kernelBits(int vectorBits, int runs, String... flags)
            throws IOException, InterruptedException {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(List.of(flags));
        command.addAll(
                List.of(
                        "--add-modules",
                        "jdk.incubator.vector",
                        "--enable-native-access=ALL-UNNAMED",
                        "-cp",
                        System.getProperty("java.class.path"),
                        KernelBits.class.getName(),
                        Integer.toString(runs),
                        Integer.toString(vectorBits)));
        Process process =
                new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        try (var out = process.inputReader(StandardCharsets.UTF_8)) {
            List<String> lines = out.readAllLines();
            assertThat(process.waitFor()).isZero();
            return lines;
        }
    }
}
