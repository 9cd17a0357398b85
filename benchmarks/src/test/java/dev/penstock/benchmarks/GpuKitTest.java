package dev.penstock.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The GPU kit's own logic, with a script in place of its Java. */
class GpuKitTest {
    /** Prints its main class, and does what the file {@code fault} says to one of them. */
    private static final String JAVA =
            """
            #!/bin/sh
            trap 'echo Full thread dump' QUIT
            said=$*
            read -r what fault <"${0%/*}/fault"
            case $said in
              *"$what"*)
                echo "$what $fault"
                if [ "$fault" = hangs ]; then while :; do sleep 0.1; done; fi
                exit 3
                ;;
            esac
            echo "ran ${said##*dev.penstock.}"
            """;

    @TempDir Path root;

    @BeforeEach
    void kit() throws IOException {
        Files.createDirectories(root.resolve("bin"));
        Files.createDirectories(root.resolve("java/bin"));
        Path kit = root.resolve("bin/gpu-kit");
        Files.copy(Path.of("../deploy/gpu-kit"), kit);
        Path java = Files.writeString(root.resolve("java/bin/java"), JAVA);
        assertThat(kit.toFile().setExecutable(true)).isTrue();
        assertThat(java.toFile().setExecutable(true)).isTrue();
        fault("nothing", "fails");
    }

    private void fault(String main, String what) throws IOException {
        Files.writeString(root.resolve("java/bin/fault"), main + " " + what + "\n");
    }

    private record Ended(int code, List<String> lines) {}

    private Ended run(String... arguments) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of("sh", "bin/gpu-kit", "--results", "out"));
        command.addAll(List.of(arguments));
        Process kit =
                new ProcessBuilder(command)
                        .directory(root.toFile())
                        .redirectErrorStream(true)
                        .start();
        String said = new String(kit.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(kit.waitFor(1, TimeUnit.MINUTES)).isTrue();
        return new Ended(kit.exitValue(), said.lines().toList());
    }

    @Test
    void chosenPartsRunInTheirOrderAndTheVerdictsComeLast() throws Exception {
        fault("GpuAgainstCpu", "fails");

        Ended ended = run("load", "beside-cpu", "kernels");

        assertThat(ended.code()).isEqualTo(1);
        assertThat(ended.lines().subList(ended.lines().size() - 4, ended.lines().size()))
                .satisfiesExactly(
                        line -> assertThat(line).matches("load +\\d+ s  passed"),
                        line -> assertThat(line).matches("beside-cpu +\\d+ s  FAILED with .* 3"),
                        line -> assertThat(line).matches("kernels +\\d+ s  passed"),
                        line -> assertThat(line).isEqualTo("did not pass: beside-cpu"));
        assertThat(Files.readAllLines(root.resolve("out/gpu-kit.log"))).containsAll(ended.lines());
        assertThat(root.resolve("out/gpu-kit.json"))
                .content()
                .contains("{\"part\": \"beside-cpu\", \"exitCode\": 3,")
                .contains("\"passed\": false");
    }

    @Test
    void aPartThatHangsPrintsItsThreadsAndEndsAtItsLimit() throws Exception {
        fault("GpuLoad", "hangs");

        Ended ended = run("--limit", "1", "load", "124m");

        assertThat(ended.code()).isEqualTo(1);
        assertThat(ended.lines())
                .contains("Full thread dump", "not run: load did not pass")
                .anyMatch(line -> line.matches("load +\\d+ s  ENDED after its limit of 1 s.*"))
                .anyMatch(line -> line.matches("124m +\\d+ s  NOT RUN: load did not pass"));
    }

    @Test
    void aPartThatIsNotThereIsRefused() throws Exception {
        Ended ended = run("machine", "tables");

        assertThat(ended.code()).isEqualTo(2);
        assertThat(ended.lines()).first().isEqualTo("gpu-kit: there is no part tables");
    }
}
