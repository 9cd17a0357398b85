package dev.penstock.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;

import com.typesafe.config.Config;
import com.typesafe.config.ConfigFactory;
import com.typesafe.config.ConfigParseOptions;
import com.typesafe.config.ConfigSyntax;
import java.io.BufferedReader;
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
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

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
                if [ "$fault" = finds ]; then echo 'result: 2 "of" 3'; exit 0; fi
                if [ "$fault" = tests ]; then printf 'Failures (2):\\n  JUnit Jupiter:AddTest:adds()\\n'; exit 1; fi
                echo 'cannot use the GPU: "cuda:0" is lost'
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

    private record Ended(int code, List<String> lines) {
        List<String> last(int count) {
            return lines.subList(lines.size() - count, lines.size());
        }
    }

    private Ended run(String... arguments) throws IOException, InterruptedException {
        return ended(start(arguments));
    }

    private Process start(String... arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of("sh", "bin/gpu-kit", "--results", "out"));
        command.addAll(List.of(arguments));
        return new ProcessBuilder(command)
                .directory(root.toFile())
                .redirectErrorStream(true)
                .start();
    }

    private static Ended ended(Process kit) throws IOException, InterruptedException {
        String said = new String(kit.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(kit.waitFor(1, TimeUnit.MINUTES)).isTrue();
        return new Ended(kit.exitValue(), said.lines().toList());
    }

    private Config results() {
        return ConfigFactory.parseFile(
                root.resolve("out/gpu-kit.json").toFile(),
                ConfigParseOptions.defaults().setSyntax(ConfigSyntax.JSON).setAllowMissing(false));
    }

    @Test
    void chosenPartsRunInTheirOrderAndTheVerdictsComeLast() throws Exception {
        fault("GpuAgainstCpu", "fails");

        Ended ended = run("load", "beside-cpu", "kernels");

        assertThat(ended.code()).isEqualTo(1);
        assertThat(ended.last(4))
                .satisfiesExactly(
                        line -> assertThat(line).matches("load +\\d+ s  passed"),
                        line ->
                                assertThat(line)
                                        .matches(
                                                "beside-cpu +\\d+ s  FAILED with .* 3: cuda:0 is lost"),
                        line -> assertThat(line).matches("kernels +\\d+ s  passed"),
                        line -> assertThat(line).isEqualTo("did not pass: beside-cpu"));
        assertThat(Files.readAllLines(root.resolve("out/gpu-kit.log"))).containsAll(ended.lines());
        assertThat(results().getBoolean("passed")).isFalse();
        assertThat(results().getConfigList("parts"))
                .extracting(part -> part.getString("part") + part.getInt("exitCode"))
                .containsExactly("load0", "beside-cpu3", "kernels0");
    }

    /** Where machine code loads, nothing else needs the PTX. */
    @Test
    void ptxThatDoesNotCompileKeepsNoOtherPartFromRunning() throws Exception {
        fault("cubins=none", "fails");

        Ended ended = run("load", "ptx", "124m");

        assertThat(ended.last(4))
                .satisfiesExactly(
                        line -> assertThat(line).matches("load +\\d+ s  passed"),
                        line -> assertThat(line).matches("ptx +\\d+ s  FAILED with .*"),
                        line -> assertThat(line).matches("124m +\\d+ s  passed"),
                        line -> assertThat(line).isEqualTo("did not pass: ptx"));
    }

    @Test
    void whatAPartFoundIsInItsVerdict() throws Exception {
        fault("GpuLoad", "finds");

        Ended ended = run("load");

        assertThat(ended.code()).isZero();
        assertThat(ended.last(2).getFirst()).matches("load +\\d+ s  passed: 2 of 3");
        assertThat(results().getConfigList("parts").getFirst().getString("verdict"))
                .isEqualTo("passed: 2 of 3");
    }

    @Test
    void theFirstTestThatFailedIsInTheVerdict() throws Exception {
        fault("ConsoleLauncher", "tests");

        Ended ended = run("contract");

        assertThat(ended.last(2).getFirst())
                .matches(
                        "contract +\\d+ s  FAILED with exit code 1: 2 failed, the first is"
                                + " AddTest:adds\\(\\)");
    }

    @Test
    void stepsAreMeasuredWithCublasLtAndWithout() throws Exception {
        Ended ended = run("kernels", "kernels-gemmex", "124m", "124m-gemmex", "355m-gemmex");

        assertThat(ended.lines())
                .contains(
                        "ran benchmarks.GpuBreakdown 124m:16",
                        "ran benchmarks.GpuBreakdown 124m:16:gemmex",
                        "ran benchmarks.GpuBenchmark alone 124m:16",
                        "ran benchmarks.GpuBenchmark alone 124m:16:gemmex",
                        "ran benchmarks.GpuBenchmark alone 355m:16:gemmex");
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
    void anInterruptEndsThePartAndTheKitWithVerdicts() throws Exception {
        fault("GpuLoad", "hangs");
        Process kit = start("load", "124m");
        BufferedReader said = kit.inputReader();
        while (!"GpuLoad hangs".equals(said.readLine())) {
            assertThat(kit.isAlive()).isTrue();
        }

        assertThat(kit.toHandle().destroy()).isTrue();
        Ended ended = new Ended(kit.waitFor(), said.lines().toList());

        assertThat(ended.code()).isEqualTo(130);
        assertThat(ended.last(3))
                .satisfiesExactly(
                        line -> assertThat(line).matches("load +\\d+ s  INTERRUPTED"),
                        line -> assertThat(line).matches("124m .*NOT RUN: the kit was interrupted"),
                        line -> assertThat(line).isEqualTo("did not pass: load 124m"));
        assertThat(results().getBoolean("passed")).isFalse();
    }

    @Test
    void verdictsAreSaidWhereNoFileCanBeWritten() throws Exception {
        Path out = Files.createDirectories(root.resolve("out"));
        for (String file : List.of("gpu-kit.log", "gpu-kit.json")) {
            Files.createSymbolicLink(out.resolve(file), Path.of("/dev/full"));
        }

        Ended ended = run("load");

        assertThat(ended.code()).isEqualTo(1);
        assertThat(ended.lines())
                .contains("the files in out are not complete: is there no room left?")
                .anyMatch(line -> line.matches("load +\\d+ s  passed"));
    }

    @ParameterizedTest
    @CsvSource({
        "machine tables, there is no part tables",
        "--limit, 'expected seconds after --limit, got nothing'",
        "--limit 1m, 'expected seconds after --limit, got 1m'",
        "--limit 9999999, 'expected seconds after --limit, got 9999999'",
        "--results, expected a folder after --results",
        "--fast, 'expected --quick, --results or --limit, got --fast'",
        "--results bin/gpu-kit/out, 'cannot write into bin/gpu-kit/out: name a folder that can be"
                + " written, with --results'",
    })
    void wrongWordsAreRefusedInOneLine(String arguments, String reason) throws Exception {
        Ended ended = run(arguments.split(" "));

        assertThat(ended.code()).isEqualTo(2);
        assertThat(ended.lines()).last().isEqualTo("gpu-kit: " + reason);
    }

    @Test
    void aKitWithoutItsJavaSaysSo() throws Exception {
        Files.delete(root.resolve("java/bin/java"));

        Ended ended = run();

        assertThat(ended.code()).isEqualTo(2);
        assertThat(ended.lines()).singleElement().asString().contains("expected the whole archive");
    }
}
