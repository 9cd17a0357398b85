package dev.penstock.runtime.cli.schedule;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.schedules.generate.Generators;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ScheduleCommandTest {
    private static final String CUSTOM_ORDER = "../sample-configs/custom-order.conf";
    private static final String HAND_WRITTEN = "../sample-configs/orders/hand-written.txt";
    private static final JsonMapper JSON = JsonMapper.builder().build();

    @TempDir Path folder;

    @Test
    void unreadableWordsAndWhatTheJudgeFindsAreSaidInOneRound() throws IOException {
        Path order = folder.resolve("mine.txt");
        Files.writeString(
                order,
                """
                ranks: 2
                micro-batches: 2
                rank 0: 0F0 0G1 0B0 0B1 0F0
                rank 1: 1F0 1B0 0F1 1F1 1B1
                """);

        Cli cli = Cli.run("schedule", "validate", order.toString());

        assertThat(cli.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(cli.err())
                .contains(":3:13: expected an op", "got '0G1'")
                .contains(":3:25: ")
                .contains(":4:17: ", "placed on rank 0")
                .doesNotContain("missing");
    }

    @Test
    void whatAKindWouldIgnoreIsAnErrorThatSaysWhichKindsTakeIt() {
        Cli gpipe =
                Cli.run("schedule", "generate", "gpipe", "--costs=forward=2", "--memory-limit=3");
        assertThat(gpipe.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(gpipe.err())
                .contains("--memory-limit: expected a kind that is searched for it (zb-1p, zb-2p)")
                .contains("--costs, --profile, --hardware, --straggler: expected a kind")
                .contains("(zb-1p, zb-2p, v-half, v-min), got gpipe");
        assertThat(Cli.run("schedule", "show", "--kind=v-half", "--memory-limit=3").err())
                .contains("(zb-1p, zb-2p), got v-half");

        assertThat(Cli.run("schedule", "generate", "v-half", "--costs=forward=2").exitCode())
                .isZero();
        assertThat(
                        Cli.run(
                                        "schedule",
                                        "generate",
                                        "zb-1p",
                                        "--costs=forward=2",
                                        "--memory-limit=3")
                                .exitCode())
                .isZero();
    }

    @Test
    void showDrawsAKindOverTime() {
        Cli show = Cli.run("schedule", "show", "--kind", "1f1b", "--ranks=2", "--micro-batches=2");

        assertThat(show.exitCode()).isEqualTo(ExitCode.OK);
        assertThat(show.out().lines().map(String::strip))
                .containsExactly(
                        "rank 0 | 0F0 0F1 .   .   0B0 -   .   0B1 -",
                        "rank 1 | .   1F0 1B0 -   1F1 1B1 -   .   .");
    }

    @Test
    void showDrawsTheOrderOfAConfiguration() {
        Cli show = Cli.run("schedule", "show", CUSTOM_ORDER, "--view", "order");

        assertThat(show.out()).startsWith("rank 0 | 0F0 0F1 0F2 0B0 0F3");
    }

    @Test
    void showTakesOverridesOfAConfiguration() {
        Cli show =
                Cli.run(
                        "schedule",
                        "show",
                        "../sample-configs/quickstart.conf",
                        "--set",
                        "schedule.kind=gpipe",
                        "--view=order");

        assertThat(show.out()).startsWith("rank 0 | 0F0 0F1 0F2 0F3 0F4 0F5 0F6 0F7 0B0");
    }

    @Test
    void shownTextIsAnOrderThatCanBeProved() throws IOException {
        Cli show = Cli.run("schedule", "show", "--kind=seq1f1b", "--slices=2", "--view=text");
        Path file = Files.writeString(folder.resolve("order.txt"), show.out());

        Cli validate = Cli.run("schedule", "validate", file.toString());

        assertThat(validate.err()).isEmpty();
        assertThat(validate.exitCode()).isEqualTo(ExitCode.OK);
    }

    @Test
    void showAddsTransfersWhenLowered() {
        Cli show = Cli.run("schedule", "show", CUSTOM_ORDER, "--lowered", "--view=text");

        assertThat(show.out()).contains("0SEND_F0", "1RECV_F0", "0REDUCE_GRAD", "1REDUCE_GRAD");
    }

    @Test
    void showAnswersProgramsInJson() throws IOException {
        JsonNode answer =
                JSON.readTree(
                        Cli.run("schedule", "show", "--kind=gpipe", "--ranks=1", "--json").out());

        assertThat(answer.get("microBatches").asInt()).isEqualTo(8);
        assertThat(answer.at("/programs/0/15").asText()).isEqualTo("0B7");
    }

    @Test
    void validateProvesAnOrderFile() {
        Cli validate = Cli.run("schedule", "validate", HAND_WRITTEN);

        assertThat(validate.exitCode()).isEqualTo(ExitCode.OK);
        assertThat(validate.out())
                .contains("eager 1f1b is valid")
                .contains("rank 0 holds at most 3 units")
                .contains("rank 1 holds at most 1 units");
    }

    @Test
    void validateNamesEveryFaultWithItsLineAndMarksIt() throws IOException {
        String broken =
                Files.readString(Path.of(HAND_WRITTEN))
                        .replace("0B6 0B7", "0B7")
                        .replace("1F0 1B0", "1B0 1F0");
        Path file = Files.writeString(folder.resolve("broken.txt"), broken);

        Cli validate = Cli.run("schedule", "validate", file.toString());

        assertThat(validate.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(validate.err()).contains("0B6", "1B0", "line 15", "line 14", "!1B0");
    }

    @Test
    void validateTellsWhatTheJudgeFindsWithADoubtfulShape() throws IOException {
        Path file =
                Files.writeString(
                        folder.resolve("order.csv"),
                        "0F0,0SEND_F0,0RECV_B0,0B0,0F5\n1F0,1B0,1SEND_B0,0F0\n");

        Cli validate = Cli.run("schedule", "validate", file.toString());

        assertThat(validate.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(validate.err())
                .contains(":1:27: micro-batch 5 leaves a gap")
                .contains(":2:18: stage 0 is computed on rank 0")
                .contains(":2:21: rank 1 has no 1RECV_F0");
    }

    @Test
    void validateRefusesWhatDoesNotFitInMemory() throws IOException {
        Cli validate = Cli.run("schedule", "validate", HAND_WRITTEN, "--memory=2", "--json");
        JsonNode answer = JSON.readTree(validate.out());

        assertThat(validate.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(answer.get("valid").asBoolean()).isFalse();
        assertThat(answer.at("/violations/0/kind").asText()).isEqualTo("PeakExceeded");
        assertThat(answer.at("/violations/0/op").asText()).isEqualTo("0F2");
        assertThat(answer.at("/violations/0/line").asInt()).isEqualTo(14);
    }

    @Test
    void simulateReportsMakespanBubbleAndRanks() throws IOException {
        Cli simulate =
                Cli.run(
                        "schedule",
                        "simulate",
                        "--kind=gpipe",
                        "--ranks=4",
                        "--micro-batches=4",
                        "--json");
        JsonNode answer = JSON.readTree(simulate.out());

        assertThat(answer.get("makespan").asLong()).isEqualTo((4 + 4 - 1) * 3);
        assertThat(answer.get("bubble").asDouble()).isEqualTo(3.0 / 7);
        assertThat(answer.at("/ranks/3/busy").asLong()).isEqualTo(12);
        assertThat(answer.at("/ranks/3/idle").asLong()).isEqualTo(9);
        assertThat(answer.at("/ranks/3/idleInSpan").asLong()).isEqualTo(0);
        assertThat(answer.at("/ranks/0/peakActivations").asInt()).isEqualTo(4);
    }

    @Test
    void simulateTakesCosts() throws IOException {
        String[] kind = {"schedule", "simulate", "--kind=1f1b", "--ranks=1", "--micro-batches=3"};
        Cli whole = Cli.run(join(kind, "--costs", "forward=10,backward=25", "--json"));
        Cli parts =
                Cli.run(join(kind, "--costs=forward=10", "--costs=backward-input=20", "--json"));

        assertThat(JSON.readTree(whole.out()).get("makespan").asLong()).isEqualTo(105);
        assertThat(JSON.readTree(parts.out()).get("makespan").asLong()).isEqualTo(93);
    }

    @Test
    void simulatePrintsATableForPeople() {
        Cli simulate = Cli.run("schedule", "simulate", CUSTOM_ORDER);

        assertThat(simulate.exitCode()).isEqualTo(ExitCode.OK);
        assertThat(simulate.out()).startsWith("eager 1f1b: makespan 27, bubble 11.1 %");
    }

    @Test
    void simulateRefusesAnOrderThatCannotRun() throws IOException {
        Path file =
                Files.writeString(
                        folder.resolve("short.txt"), "ranks: 1\nmicro-batches: 1\nrank 0: 0F0\n");

        Cli simulate = Cli.run("schedule", "simulate", file.toString());

        assertThat(simulate.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(simulate.err()).contains("0B0");
    }

    @Test
    void aGeneratedFileIsProvedAndTimedAsItsKindIs() throws IOException {
        String[] shape = {"--ranks=3", "--micro-batches=5"};
        for (String format : new String[] {"text", "torch-csv"}) {
            for (String extra : new String[] {"--compute-only", "--pad"}) {
                Path file = folder.resolve("order." + format);
                String[] generate = {"schedule", "generate", "1f1b", "--format=" + format, extra};
                Files.writeString(file, Cli.run(join(generate, shape)).out());

                String as = "--format=" + format;
                Cli validate = Cli.run("schedule", "validate", file.toString(), as);
                Cli simulate = Cli.run("schedule", "simulate", file.toString(), as, "--json");

                assertThat(validate.err()).isEmpty();
                assertThat(validate.exitCode()).isEqualTo(ExitCode.OK);
                assertThat(JSON.readTree(simulate.out()).get("makespan").asInt())
                        .isEqualTo((5 + 3 - 1) * 3);
            }
        }
    }

    @Test
    void torchCsvHoldsTheOpsAlone() {
        Cli generate =
                Cli.run(
                        "schedule",
                        "generate",
                        "gpipe",
                        "--ranks=2",
                        "--micro-batches=2",
                        "--compute-only",
                        "--format=torch-csv");

        assertThat(generate.out()).isEqualTo("0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n");
    }

    @Test
    void convertTurnsOneFormIntoTheOther() throws IOException {
        Path csv = folder.resolve("order.csv");
        Path text = folder.resolve("order.txt");
        Cli.run("schedule", "generate", "seq1f1b", "--slices=2", "--output", csv.toString());
        Cli.run("schedule", "convert", csv.toString(), "--output", text.toString());

        Cli diff = Cli.run("schedule", "diff", csv.toString(), text.toString(), "--json");

        assertThat(Files.readString(text)).startsWith("schedule: custom\nranks: 4\n");
        assertThat(JSON.readTree(diff.out()).get("equal").asBoolean()).isTrue();
    }

    /** It is text, and may have been edited. */
    @Test
    void aFileThatIsThereIsReplacedOnlyByForce() throws IOException {
        Path order = Files.writeString(folder.resolve("mine.txt"), "# mine");
        String[] generate = {"schedule", "generate", "1f1b", "--output", order.toString()};

        Cli refused = Cli.run(generate);
        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err()).contains("mine.txt is there already", "--force");
        assertThat(order).content().isEqualTo("# mine");

        Cli forced =
                Cli.run(
                        Stream.concat(Stream.of(generate), Stream.of("--force"))
                                .toArray(String[]::new));
        assertThat(forced.exitCode()).as(forced.err()).isZero();
        assertThat(forced.out()).contains("wrote " + order);
        assertThat(order).content().startsWith("schedule: ");
    }

    @Test
    void simulateTakesTheCostsOfACluster() throws IOException {
        String[] simulate = {"schedule", "simulate", "--kind=1f1b", "--ranks=3", "--json"};
        String laptops = "../sample-configs/hardware/4-laptops.conf";

        JsonNode small = JSON.readTree(Cli.run(join(simulate, "--hardware", laptops)).out());
        JsonNode large =
                JSON.readTree(
                        Cli.run(join(simulate, "--hardware", laptops, "--model=gpt2-355m")).out());
        Cli tooMany =
                Cli.run("schedule", "simulate", "--kind=1f1b", "--ranks=9", "--hardware", laptops);

        assertThat(large.get("makespan").asLong()).isGreaterThan(small.get("makespan").asLong());
        assertThat(tooMany.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(tooMany.err()).contains("at least 9 devices, one per rank, got 4");
    }

    @Test
    void diffShowsWhereOrdersPartAndWhatItCosts() throws IOException {
        Path first = folder.resolve("gpipe.txt");
        Path second = folder.resolve("1f1b.txt");
        Cli.run("schedule", "generate", "gpipe", "--compute-only", "-o", first.toString());
        Cli.run("schedule", "generate", "1f1b", "--compute-only", "-o", second.toString());

        Cli diff = Cli.run("schedule", "diff", first.toString(), second.toString());

        assertThat(diff.out())
                .contains("rank 0 differs from op 4 on", "... 0F1 0F2 0F3 [0F4]", "[0B0]")
                .containsPattern("A +33 +27.3 % +8")
                .containsPattern("B +33 +27.3 % +4");
    }

    @Test
    void comparePrintsEveryFamily() throws IOException {
        Cli compare = Cli.run("schedule", "compare", "--ranks=4", "--micro-batches=8");
        JsonNode json = JSON.readTree(Cli.run("schedule", "compare", "--json").out());

        assertThat(compare.out()).contains(Generators.kinds());
        for (JsonNode row : json.get("rows")) {
            if (row.get("kind").asText().equals("1f1b")) {
                assertThat(row.get("makespan").asDouble()).isEqualTo(33);
                assertThat(row.get("peakActivations").asDouble()).isEqualTo(4);
            }
        }
    }

    @Test
    void drawMakesPicturesAndTraces() throws IOException {
        Path svg = folder.resolve("order.svg");
        Cli draw = Cli.run("schedule", "draw", HAND_WRITTEN, "-o", svg.toString());
        Cli trace = Cli.run("schedule", "draw", HAND_WRITTEN, "--as=trace");

        assertThat(draw.exitCode()).isEqualTo(ExitCode.OK);
        assertThat(Files.readString(svg)).startsWith("<svg").contains("1F0");
        assertThat(JSON.readTree(trace.out()).get("traceEvents")).isNotEmpty();
    }

    @Test
    void validateLowersForTheBuffersThatAreGiven() throws IOException {
        String[] shape = {"--kind=breadth-first", "--ranks=2", "--chunks=2", "--micro-batches=8"};
        Path lowered = folder.resolve("lowered.txt");
        Cli.run(
                "schedule",
                "generate",
                "breadth-first",
                shape[1],
                shape[2],
                shape[3],
                "-o",
                "" + lowered);

        for (String buffers : List.of("--buffers=1", "--buffers=3", "--buffers=100")) {
            assertThat(
                            Cli.run(join(new String[] {"schedule", "validate", buffers}, shape))
                                    .exitCode())
                    .isEqualTo(ExitCode.OK);
        }
        assertThat(Cli.run(join(new String[] {"schedule", "validate"}, shape)).exitCode())
                .isEqualTo(ExitCode.OK);
        assertThat(Cli.run("schedule", "validate", "" + lowered).exitCode()).isEqualTo(ExitCode.OK);
        assertThat(badInput("validate", "" + lowered, "--buffers=1")).contains("deadlock: rank 0");
    }

    @Test
    void everyMisuseIsOneClearError() throws IOException {
        Path noOrder = Files.writeString(folder.resolve("no.txt"), "ranks: 1\nrank 0: 0X0 0F\n");

        assertThat(badInput("show")).contains("--kind");
        assertThat(badInput("show", HAND_WRITTEN, "--kind=gpipe")).contains("a file and --kind");
        assertThat(badInput("show", "--kind=gpip")).contains("gpip", "terapipe");
        assertThat(badInput("show", "--kind=gpipe", "--ranks=0")).contains("1 rank");
        assertThat(badInput("show", "--kind=gpipe", "--slices=0")).contains("--slices");
        assertThat(badInput("show", "--kind=gpipe", "--ranks=0", "--micro-batches=100000000"))
                .contains("--ranks: expected 1 rank to 67108864 ranks, got 0")
                .contains("--micro-batches: expected 1 micro-batch to 67108864 micro-batches");
        assertThat(badInput("show", "--kind=gpipe", "--ranks=two")).contains("--ranks", "two");
        assertThat(badInput("show", "nowhere.txt")).contains("nowhere.txt");
        assertThat(badInput("show", noOrder.toString())).contains("no.txt:2:9", "no.txt:2:13");
        assertThat(badInput("simulate", HAND_WRITTEN, "--costs=sideways=1")).contains("sideways");
        assertThat(badInput("simulate", HAND_WRITTEN, "--costs=forward=-1"))
                .contains("forward, got '-1'");
        assertThat(badInput("simulate", HAND_WRITTEN, "--costs=a=1,backward"))
                .contains("'a'", "'backward'");
        assertThat(badInput("simulate", HAND_WRITTEN, "--profile=nowhere")).contains("nowhere");
        assertThat(badInput("simulate", HAND_WRITTEN, "--hardware=no", "--model=m"))
                .contains("no", "--model: expected one of gpt");
        assertThat(badInput("simulate", HAND_WRITTEN, "--hardware=no", "--profile=no"))
                .contains("expected one of --costs, --profile and --hardware");
        assertThat(badInput("validate", HAND_WRITTEN, "--buffers=0")).contains("--buffers");
        assertThat(badInput("generate", "zigzag")).contains("zigzag", "1f1b");
        assertThat(badInput("generate", "1f1b", "--chunks=3")).contains("3 chunks", "try 1");
        assertThat(badInput("generate", "1f1b", "--format=xml")).contains("text or torch-csv");
        assertThat(badInput("convert", HAND_WRITTEN, "-o", "/nowhere/x.txt")).contains("/nowhere");
    }

    @Test
    void everyOptionThatCountsTooMuchIsSaidAtOnce() {
        String many = "=2000000000";
        String[] lowering = {"--gathers=per-pass", "--look-ahead" + many, "--layers" + many};
        String[] lowered = {"--look-ahead: expected 0 to", "--layers: expected 1 to 10000"};

        for (String command : List.of("show", "draw", "simulate", "validate")) {
            assertThat(
                            badInput(
                                    command,
                                    join(
                                            lowering,
                                            "--kind=interleaved-1f1b",
                                            "--ranks=0",
                                            "--group" + many,
                                            "--memory-limit=-1")))
                    .as(command)
                    .contains(lowered)
                    .contains("--ranks: expected 1 rank", "--group: expected 1 micro-batch")
                    .contains("--memory-limit: expected more than 0");
        }
        assertThat(badInput("validate", HAND_WRITTEN, "--buffers=0", "--replicas" + many))
                .contains("--buffers: expected 1 to", "--replicas: expected 1 to");
        assertThat(badInput("simulate", "--kind=gpipe", "--chunks=0", "--costs=a=1"))
                .contains("--chunks: expected 1 chunk", "--costs: unknown cost 'a'");
        assertThat(
                        badInput(
                                "generate",
                                join(
                                        lowering,
                                        "gpipe",
                                        "--micro-batches=0",
                                        "--slice-grid=0",
                                        "--tokens" + many,
                                        "--costs=a=1")))
                .contains(lowered)
                .contains("--micro-batches: expected 1", "--slice-grid: expected 1 to")
                .contains("--tokens: expected 1 to", "--costs: unknown cost 'a'");
        assertThat(badInput("compare", join(lowering, "--ranks=0", "--slices=0", "--costs=a=1")))
                .contains(lowered)
                .contains("--ranks: expected 1 rank", "--slices: expected 1", "--costs: unknown");
    }

    private static String badInput(String command, String[] arguments) {
        return badInput(join(new String[] {command}, arguments));
    }

    private static String badInput(String... arguments) {
        Cli answer = Cli.run(join(new String[] {"schedule"}, arguments));
        assertThat(answer.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(answer.err()).doesNotContain("at dev.penstock", "unexpected");
        return answer.err();
    }

    private static String[] join(String[] first, String... second) {
        return Stream.of(first, second).flatMap(Arrays::stream).toArray(String[]::new);
    }
}
