package dev.penstock.runtime.cli.schedule;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.command.ExitCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Orders in which replicas share their micro-batches, from the command line. */
class WiredOrderCommandTest {
    private static final JsonMapper JSON = JsonMapper.builder().build();

    @TempDir Path folder;

    private static Cli schedule(String command, String... more) {
        var arguments = new ArrayList<>(List.of("schedule", command));
        arguments.addAll(List.of(more));
        return Cli.run(arguments.toArray(String[]::new));
    }

    private static long makespan(String... more) throws IOException {
        var arguments = new ArrayList<>(List.of("--json"));
        arguments.addAll(List.of(more));
        Cli simulate = schedule("simulate", arguments.toArray(String[]::new));
        assertThat(simulate.err()).isEmpty();
        JsonNode answer = JSON.readTree(simulate.out());
        return answer.get("makespan").asLong();
    }

    @Test
    void drawShowsWhoDoesTheMicroBatchesOfARankThatIsGone() {
        Cli draw =
                schedule(
                        "draw",
                        "--kind=wired-zb",
                        "--ranks=2",
                        "--peers=3",
                        "--micro-batches=6",
                        "--without=3",
                        "--hold-more=0",
                        "--as=grid");

        assertThat(draw.err()).isEmpty();
        assertThat(draw.out())
                .isEqualTo(
                        """
                        rank 0 | 0F0 0F1 .   0I0 0W0 .   .   .   .   0I1 0W1
                        rank 1 | .   1F0 1I0 1W0 1F2 1I2 1W2 1F1 1I1 1W1 .
                        rank 2 | 0F2 0F3 .   .   .   .   0I2 0I3 0W2 0W3 .
                        rank 3 | .   .   .   .   .   .   .   .   .   .   .
                        rank 4 | 0F4 0F5 .   0I4 0W4 .   .   .   .   0I5 0W5
                        rank 5 | .   1F4 1I4 1W4 1F3 1I3 1W3 1F5 1I5 1W5 .
                        """);
    }

    /**
     * A file says all of an order: who asks for a rank less would read the figures of all ranks.
     */
    @Test
    void optionsOfAGeneratedOrderAreRefusedBesideAFile() {
        String file = folder.resolve("order.txt").toString();
        Cli generate = schedule("generate", "wired-zb", "--compute-only", "--output", file);
        Cli beside =
                schedule(
                        "simulate",
                        file,
                        "--without=1",
                        "--ranks=4",
                        "--set=batch.micro-batches=2");
        Cli configured = schedule("show", "../sample-configs/quickstart.conf", "--peers=2");
        Cli kind = schedule("show", "--kind=1f1b", "--set=pipeline.stages=3");

        assertThat(generate.err()).isEmpty();
        assertThat(beside.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(beside.err())
                .contains("--without, --ranks: expected beside --kind only, got " + file)
                .contains("--set: expected beside a configuration only, got " + file);
        assertThat(configured.err()).contains("--peers: expected beside --kind only");
        assertThat(kind.err())
                .contains("--set: expected beside a configuration only, got --kind 1f1b");
    }

    @Test
    void simulateTimesADegradedStepBesideTheUsualOne() throws IOException {
        String[] usual = {"--kind=wired-1f1b", "--ranks=2", "--peers=4", "--micro-batches=64"};
        List<String> degraded = new ArrayList<>(List.of(usual));
        degraded.add("--without=5");

        assertThat(makespan(usual)).isEqualTo(51);
        assertThat(makespan(degraded.toArray(String[]::new))).isBetween(66L, 71L);
    }

    @Test
    void generatedOrdersReadBackAndAreProvedInBothFormats() throws IOException {
        for (String format : List.of("text", "torch-csv")) {
            for (String wiring : List.of("straight", "balanced", "random")) {
                for (String without : List.of("", "--without=1,2")) {
                    Path file = folder.resolve("order");
                    var generate =
                            new ArrayList<>(
                                    List.of(
                                            "wired-1f1b",
                                            "--ranks=2",
                                            "--peers=3",
                                            "--micro-batches=12",
                                            "--wiring=" + wiring,
                                            "--format=" + format,
                                            "--force",
                                            "-o",
                                            file.toString()));
                    if (!without.isEmpty()) {
                        generate.add(without);
                    }
                    Cli generated = schedule("generate", generate.toArray(String[]::new));
                    Cli proved =
                            schedule(
                                    "validate",
                                    file.toString(),
                                    "--format=" + format,
                                    "--memory=1GiB",
                                    "--model=layers=2,width=64,heads=2,vocabulary=100,sequence=16");

                    assertThat(generated.err()).isEmpty();
                    assertThat(proved.err()).as(Files.readString(file)).isEmpty();
                    assertThat(proved.out())
                            .contains("complete, in order, and cannot hang")
                            .contains("rank 5 holds");
                }
            }
        }
    }

    @Test
    void speedsDecideABalancedWiring() throws IOException {
        Path file = folder.resolve("order.txt");
        String[] slow = {"--straggler=2=3", "--straggler=3=3"};
        Cli generated =
                schedule(
                        "generate",
                        "wired-zb",
                        "--ranks=2",
                        "--peers=2",
                        "--micro-batches=64",
                        "--wiring=balanced",
                        "--compute-only",
                        slow[0],
                        slow[1],
                        "-o",
                        file.toString());
        assertThat(generated.err()).isEmpty();

        long balanced = makespan(file.toString(), slow[0], slow[1]);
        long equal =
                makespan(
                        "--kind=wired-zb",
                        "--ranks=2",
                        "--peers=2",
                        "--micro-batches=64",
                        slow[0],
                        slow[1]);

        // 64 micro-batches of 3: at 4/3 of the fast peer's speed 144, at 2/3 of it 288
        assertThat(balanced).isBetween(144L, 160L);
        assertThat(equal).isGreaterThanOrEqualTo(288);
    }

    @Test
    void whatIsWrongIsSaidAtOnceAndOptionsThatAKindIgnoresAreRefused() {
        Cli wrong =
                schedule(
                        "draw",
                        "--kind=wired-zb",
                        "--ranks=2",
                        "--peers=1",
                        "--without=9",
                        "--seed=3");
        Cli gone = schedule("show", "--kind=wired-zb", "--ranks=2", "--without=1,3");
        Cli odd = schedule("show", "--kind=wired-zb", "--ranks=2", "--micro-batches=7");
        Cli plain = schedule("show", "--kind=1f1b", "--peers=2", "--without=1");
        Cli chunked = schedule("show", "--kind=wired-zb", "--chunks=2");
        Cli gathers = schedule("simulate", "--kind=wired-zb", "--gathers=per-pass");

        assertThat(wrong.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(wrong.err())
                .contains(
                        "--peers: expected 2",
                        "--without: expected ranks from 0 to 1, got 9",
                        "--seed: expected --wiring random");
        assertThat(gone.err()).contains("nobody is left for stage 1");
        assertThat(odd.err()).contains("got 7 together");
        assertThat(plain.err())
                .contains(
                        "--peers, --without: expected a wired kind (wired-1f1b, wired-zb), got 1f1b");
        assertThat(chunked.err()).contains("one stage per rank");
        assertThat(gathers.err()).contains("keep whole parameters on every rank");
        for (Cli refused : List.of(gone, odd, plain, chunked, gathers)) {
            assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        }
    }

    @Test
    void aRunTakesAWiredOrderOfItsReplicas() {
        Path file = folder.resolve("order.txt");
        schedule(
                "generate",
                "wired-1f1b",
                "--ranks=2",
                "--peers=2",
                "--micro-batches=8",
                "-o",
                file.toString());

        Cli other =
                Cli.run(
                        "schedule",
                        "simulate",
                        "../sample-configs/quickstart.conf",
                        "--set=schedule.file=" + file);
        Cli fitting =
                Cli.run(
                        "config",
                        "check",
                        "../sample-configs/quickstart.conf",
                        "--set=schedule.file=" + file,
                        "--set=parallel.data=2",
                        "--set=optimizer.gradient-sum=fixed-point");

        assertThat(other.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(other.err())
                .contains("an order for parallel.data = 1", "optimizer.gradient-sum");
        assertThat(fitting.exitCode()).as(fitting.err()).isZero();
    }
}
