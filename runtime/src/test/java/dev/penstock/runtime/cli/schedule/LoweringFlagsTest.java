package dev.penstock.runtime.cli.schedule;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.schedules.ir.ScheduleFormat;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Every lowering pass has a flag, and what comes out can be read, proved and timed. */
class LoweringFlagsTest {
    private static final JsonMapper JSON = JsonMapper.builder().build();
    private static final List<List<String>> FLAGS =
            List.of(
                    List.of("--gathers=per-op"),
                    List.of("--gathers=per-micro-batch", "--look-ahead=0"),
                    List.of("--gathers=per-pass", "--look-ahead=2", "--reduce=per-step"),
                    List.of("--gathers=per-step", "--reduce=per-micro-batch"),
                    List.of("--gathers=per-pass", "--layers=3"),
                    List.of("--reduce=per-step", "--split-backward"),
                    List.of("--recompute=full"),
                    List.of("--recompute=full", "--split-backward", "--gathers=per-op"),
                    List.of("--merge-backward"));

    @TempDir Path folder;

    @Test
    void breadthFirstGathersEveryStageOncePerPass() {
        assertThat(
                        shown(
                                "--kind=breadth-first",
                                "--ranks=1",
                                "--micro-batches=2",
                                "--chunks=2",
                                "--gathers=per-pass",
                                "--look-ahead=0",
                                "--reduce=per-step"))
                .isEqualTo(
                        "0UNSHARD 0F0 0F1 0RESHARD 1UNSHARD 1F0 1F1 1B1 1B0 1RESHARD 1REDUCE_GRAD"
                                + " 0UNSHARD 0B1 0B0 0RESHARD 0REDUCE_GRAD");
    }

    @Test
    void everyFlagAddsTheOpsOfItsPass() {
        String[] one = {"--kind=gpipe", "--ranks=1", "--micro-batches=2"};

        assertThat(shown(with(one, "--split-backward"))).isEqualTo("0F0 0F1 0I0 0W0 0I1 0W1");
        assertThat(shown(with(one, "--recompute=full"))).isEqualTo("0F0 0F1 0R0 0B0 0R1 0B1");
        assertThat(shown(with(one, "--recompute=none"))).isEqualTo("0F0 0F1 0B0 0B1");
        assertThat(shown(with(one, "--recompute=full", "--split-backward")))
                .isEqualTo("0F0 0F1 0R0 0I0 0W0 0R1 0I1 0W1");
        assertThat(shown(with(one, "--reduce=per-micro-batch")))
                .isEqualTo("0F0 0F1 0B0 0REDUCE_GRAD 0B1 0REDUCE_GRAD");
        assertThat(shown(with(one, "--gathers=per-step", "--layers=2")))
                .isEqualTo(
                        "0UNSHARD[0-0] 0UNSHARD[1-1] 0F0 0F1 0B0 0B1 0RESHARD[0-0] 0RESHARD[1-1]");
        assertThat(shown("--kind=zb-h1", "--ranks=1", "--micro-batches=2", "--merge-backward"))
                .isEqualTo("0F0 0B0 0F1 0B1");
    }

    @Test
    void whatIsGeneratedWithThemReadsBackAndIsProved() throws IOException {
        for (ScheduleFormat format : ScheduleFormat.values()) {
            for (List<String> flags : FLAGS) {
                boolean sayable =
                        format == ScheduleFormat.TEXT
                                || (!flags.contains("--recompute=full")
                                        && !flags.contains("--layers=3"));
                Path file = folder.resolve("order");
                Path again = folder.resolve("again");
                String as = "--format=" + format.label();
                var generate = new ArrayList<>(List.of("schedule", "generate", "breadth-first"));
                generate.addAll(
                        List.of("--ranks=2", "--chunks=2", as, "--force", "-o", file.toString()));
                generate.addAll(flags);

                Cli generated = Cli.run(generate.toArray(String[]::new));

                assertThat(generated.exitCode())
                        .as("%s", generate)
                        .isEqualTo(sayable ? ExitCode.OK : ExitCode.BAD_INPUT);
                if (!sayable) {
                    assertThat(generated.err()).contains("use the text format");
                    continue;
                }
                Cli.run(
                        "schedule",
                        "convert",
                        file.toString(),
                        "--from=" + format.label(),
                        "--to=" + format.label(),
                        "--force",
                        "-o",
                        again.toString());
                Cli validate = Cli.run("schedule", "validate", file.toString(), as);
                Cli simulate = Cli.run("schedule", "simulate", file.toString(), as);

                assertThat(again).hasSameTextualContentAs(file);
                assertThat(validate.err()).as("%s", generate).isEmpty();
                assertThat(simulate.exitCode()).isEqualTo(ExitCode.OK);
            }
        }
    }

    @Test
    void validateProvesAnOrderAsTheyMakeIt() {
        for (List<String> flags : FLAGS) {
            var validate = new ArrayList<>(List.of("schedule", "validate", "--kind=1f1b"));
            validate.add("--buffers=1");
            validate.addAll(flags);

            Cli proved = Cli.run(validate.toArray(String[]::new));

            assertThat(proved.err()).as("%s", flags).isEmpty();
            assertThat(proved.exitCode()).isEqualTo(ExitCode.OK);
        }
    }

    @Test
    void simulateTimesWhatTheyAdd() throws IOException {
        String[] one = {"--kind=gpipe", "--ranks=1", "--micro-batches=3"};
        String costs = "--costs=forward=10,backward=20,recompute=11,gather=5,reduce=7";

        assertThat(makespan(with(one, costs))).isEqualTo(3 * 30);
        assertThat(makespan(with(one, costs, "--recompute=full"))).isEqualTo(3 * 41);
        // one gather before the first forward, one reduction after the last backward
        assertThat(makespan(with(one, costs, "--gathers=per-step", "--reduce=per-step")))
                .isEqualTo(5 + 3 * 30 + 7);
    }

    @Test
    void drawHasThemInItsPicture() {
        Cli draw = Cli.run("schedule", "draw", "--kind=gpipe", "--as=grid", "--recompute=full");

        assertThat(draw.out()).contains("0R7");
    }

    @Test
    void whatDoesNotGoTogetherIsSaidAtOnce() {
        Cli both =
                Cli.run(
                        "schedule",
                        "show",
                        "--kind=gpipe",
                        "--split-backward",
                        "--merge-backward",
                        "--look-ahead=-1",
                        "--layers=0");
        Cli computeOnly =
                Cli.run("schedule", "generate", "gpipe", "--compute-only", "--gathers=per-op");
        Cli unknown = Cli.run("schedule", "show", "--kind=gpipe", "--gathers=sometimes");

        assertThat(List.of(both.exitCode(), computeOnly.exitCode(), unknown.exitCode()))
                .containsOnly(ExitCode.BAD_INPUT);
        assertThat(both.err())
                .contains(
                        "got both",
                        "expected --gathers beside --look-ahead",
                        "--look-ahead: expected 0 to 67108864, got -1",
                        "--layers: expected 1 to 10000, got 0");
        assertThat(computeOnly.err()).contains("--compute-only");
        assertThat(unknown.err()).contains("per-micro-batch", "sometimes");
    }

    /** The only rank's ops. */
    private static String shown(String... arguments) {
        Cli show = Cli.run(with(new String[] {"schedule", "show", "--view=text"}, arguments));
        String line =
                show.out().lines().filter(l -> l.startsWith("rank 0:")).findFirst().orElse("");
        return line.replaceFirst("rank 0:\\s*", "");
    }

    private static long makespan(String... arguments) throws IOException {
        Cli simulate = Cli.run(with(new String[] {"schedule", "simulate", "--json"}, arguments));
        JsonNode answer = JSON.readTree(simulate.out());
        return answer.get("makespan").asLong();
    }

    private static String[] with(String[] first, String... more) {
        var all = new ArrayList<>(List.of(first));
        all.addAll(List.of(more));
        return all.toArray(String[]::new);
    }
}
