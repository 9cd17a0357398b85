package dev.penstock.runtime.cli.about;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.command.ExitCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ConfigCommandTest {
    private static final JsonMapper JSON = JsonMapper.builder().build();

    @TempDir Path folder;

    private String good = "";
    private String bad = "";

    @BeforeEach
    void files() throws IOException {
        Files.writeString(folder.resolve("corpus.txt"), "to be or not to be ".repeat(1000));
        good = write("good.conf", "data.source = corpus.txt");
        bad = write("bad.conf", "data.source = corpus.txt\nmodel.widht = 1\nrun.steps = 0\n");
    }

    @Test
    void checkPrintsTheWholeConfiguration() {
        Cli check = Cli.run("config", "check", good, "--set", "model.width=128");

        assertThat(check.exitCode()).isEqualTo(ExitCode.OK);
        assertThat(check.out()).contains("  width = 128\n", "  reduction-block = 128\n");
        assertThat(check.err()).contains("no problems");
    }

    @Test
    void checkNotesATemplateThatNothingIsWrittenWith() {
        Cli check = Cli.run("config", "check", good, "--set", "data.template=chatml");

        assertThat(check.exitCode()).isEqualTo(ExitCode.OK);
        assertThat(check.err())
                .contains("note: data.template = chatml has no effect: data.format = text");
    }

    /** GPT-2's table of tokens and its gradient alone are 294 MiB. */
    @Test
    void aModelOf124MillionParametersFitsIntoTheMemoryOfItsSample() {
        String sample = "" + Path.of("..", "sample-configs", "swapped-124m.conf");

        Cli fits = Cli.run("config", "check", sample);
        Cli less = Cli.run("config", "check", sample, "--set=device.memory-limit=330MiB");

        assertThat(fits.exitCode()).isEqualTo(ExitCode.OK);
        assertThat(fits.out()).contains("memory-limit = 384 MiB");
        assertThat(less.err()).contains("device.memory-limit", "at least 395,");
    }

    @Test
    void checkNotesSettingsOfLengthsThatDoNothing() {
        Cli equal =
                Cli.run(
                        "config",
                        "check",
                        good,
                        "--set=batch.length-step=8",
                        "--set=batch.arrangement=valley");
        Cli usual = Cli.run("config", "check", good);
        Path lengths = Path.of("..", "sample-configs", "lengths.conf");
        Cli tooLong = Cli.run("config", "check", "" + lengths, "--set=batch.length-step=128");
        Cli shorter = Cli.run("config", "check", "" + lengths);

        assertThat(equal.exitCode()).isEqualTo(ExitCode.OK);
        assertThat(equal.err())
                .contains("note: batch.length-step = 8 has no effect: data.packing = none")
                .contains("note: batch.arrangement = valley has no effect: data.packing = none");
        assertThat(tooLong.exitCode()).isEqualTo(ExitCode.OK);
        assertThat(tooLong.err())
                .contains("note: batch.length-step = 128 has no effect but padding")
                .contains("no row is longer than model.context = 128");
        assertThat(usual.err() + shorter.err()).doesNotContain("no effect");
    }

    @Test
    void checkNotesExchangesThatNeverComeAndCountsTheStepThatSendsMost() {
        Cli sums = outer("parallel.outer.every=none");
        Cli apart = outer("parallel.outer.every=4");
        Cli both = outer("parallel.outer={every=4, after=6}");
        Cli noExchange = outer("parallel.outer={every=4, after=7}");
        Cli neverApart = outer("parallel.outer={every=4, after=10}");

        assertThat(peak(both)).isEqualTo(peak(sums));
        assertThat(apart.err() + both.err()).doesNotContain("no effect", "never");
        assertThat(noExchange.err())
                .contains(
                        "note: replicas are never brought together: the first exchange would be"
                                + " applied after step 11");
        assertThat(neverApart.err())
                .contains("note: parallel.outer has no effect: replicas sum gradients in all of");
    }

    private Cli outer(String setting) {
        Cli check =
                Cli.run(
                        "config",
                        "check",
                        good,
                        "--set=run.steps=10",
                        "--set=parallel.data=2",
                        "--set=" + setting);
        assertThat(check.exitCode()).isEqualTo(ExitCode.OK);
        return check;
    }

    private static String peak(Cli check) {
        return check.err()
                .lines()
                .filter(line -> line.contains("peak traffic"))
                .findFirst()
                .orElseThrow();
    }

    @Test
    void checkNotesSettingsOfPlansAndOrdersThatDoNothing() {
        Cli fixed =
                Cli.run(
                        "config",
                        "check",
                        good,
                        "--set=pipeline.adapt-every=3",
                        "--set=pipeline.adapt-margin=0.1",
                        "--set=schedule.costs=[1,2,3,4,5,6]",
                        "--set=schedule.slices=2",
                        "--set=schedule.backward=reverse");
        Cli alone =
                Cli.run(
                        "config",
                        "check",
                        good,
                        "--set=pipeline.stages=1",
                        "--set=recovery={enabled=off, rebalance-after=5 s}",
                        "--set=pipeline.partition=measured",
                        "--set=run.steps=10");
        Cli used =
                Cli.run(
                        "config",
                        "check",
                        good,
                        "--set=schedule.candidates=[zb-1p]",
                        "--set=pipeline.adapt-every=3",
                        "--set=schedule.costs=[1,2,3,4,5,6]");

        Cli gone =
                Cli.run(
                        "config",
                        "check",
                        good,
                        "--set=schedule.kind=wired-1f1b",
                        "--set=parallel.data=2",
                        "--set=optimizer.gradient-sum=fixed-point",
                        "--set=recovery={enabled=off, degraded=on}");

        assertThat(gone.err())
                .contains("note: recovery.degraded has no effect: recovery.enabled = false");
        assertThat(fixed.exitCode()).isEqualTo(ExitCode.OK);
        assertThat(fixed.err())
                .contains("note: pipeline.adapt-every = 3 has no effect: the plan stays as it is")
                .contains("note: pipeline.adapt-margin = 0.1 has no effect")
                .contains("note: schedule.costs = [1, 2, 3, 4, 5, 6] has no effect")
                .contains("note: schedule.slices = 2 has no effect: schedule.kind = 1f1b works")
                .contains("note: schedule.backward = reverse has no effect");
        assertThat(alone.err())
                .contains("note: pipeline.partition = measured has no effect: there is only one")
                .contains("note: recovery.rebalance-after has no effect: recovery.enabled = false")
                .contains("note: the plan stays as it is: the run ends after run.steps = 10");
        assertThat(used.err()).doesNotContain("no effect", "left out");
    }

    @Test
    void checkNotesCandidatesThatCannotTakeTheOrdersPlace() {
        Cli check =
                Cli.run(
                        "config",
                        "check",
                        good,
                        "--set=schedule.candidates=[zb-h1, zb-v, seq1f1b, 1f1b]");

        assertThat(check.exitCode()).isEqualTo(ExitCode.OK);
        assertThat(check.err())
                .contains(
                        "note: schedule.candidates: zb-v is left out: expected orders of stages"
                                + " [[0], [1]] on the ranks")
                .contains("got one of stages [[0, 3], [1, 2]] on the ranks")
                .containsPattern("seq1f1b is left out: .*got one of .*slices \\[\\d+, ")
                .doesNotContain("zb-h1 is left out", ": 1f1b is left out");
    }

    @Test
    void checkTellsAllProblemsAndNoTrace() {
        Cli check = Cli.run("config", "check", bad, "--set", "schedule.kind=gpip");

        assertThat(check.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(check.out()).isEmpty();
        assertThat(check.err())
                .startsWith("penstock: 3 problems")
                .contains("bad.conf:2: model.widht", "bad.conf:3: run.steps")
                .contains("--set schedule.kind=gpip: schedule.kind")
                .doesNotContain("at dev.penstock");
    }

    @Test
    void checkTellsProblemsOfOrderAndDataTogether() throws IOException {
        Files.writeString(folder.resolve("short.txt"), "to be");
        Files.writeString(folder.resolve("order.txt"), "ranks: 2\nmicro-batches: 8\nrank 0: 0B0\n");
        String config = write("two.conf", "data.source = short.txt\nschedule.file = order.txt\n");

        Cli check = Cli.run("config", "check", config);

        assertThat(check.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(check.err())
                .contains("two.conf:1: data.source", "order.txt:3: ", "rank 1")
                .doesNotContain("at dev.penstock");
    }

    @Test
    void checkTellsWhatDoesNotFitInMemory() {
        Cli check = Cli.run("config", "check", good, "--set", "device.memory-limit=1 MiB");

        assertThat(check.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(check.err()).contains("--set device.memory-limit=1 MiB: device.memory-limit");
    }

    @Test
    void checkAnswersProgramsInJson() throws IOException {
        JsonNode answer = JSON.readTree(Cli.run("config", "check", good, "--json").out());

        assertThat(answer.get("ok").asBoolean()).isTrue();
        assertThat(answer.get("resolved").asText()).contains("width = 256");
    }

    /** A micro-batch's activations go out of every stage but the last; replicas sum gradients. */
    @Test
    void checkPredictsWhatRanksSend() throws IOException {
        JsonNode sent =
                JSON.readTree(
                                Cli.run(
                                                "config",
                                                "check",
                                                good,
                                                "--json",
                                                "--set",
                                                "pipeline.stages=2",
                                                "--set",
                                                "batch={sequences=8, micro-batches=4}",
                                                "--set",
                                                "model={context=32, width=64, heads=2}",
                                                "--set",
                                                "parallel.data=2")
                                        .out())
                        .get("sentBytes");

        assertThat(sent).hasSize(4);
        long ofReplica = 8L / 2 * 32 * 64 * 4;
        assertThat(sent.get(0).get("activations").asLong()).isEqualTo(ofReplica);
        assertThat(sent.get(1).get("activations").asLong()).isZero();
        assertThat(sent.get(3).get("activation gradients").asLong()).isEqualTo(ofReplica);
        assertThat(sent.get(2).get("gradient sums").asLong()).isPositive();
        assertThat(sent.get(2).get("tensor sums").asLong()).isZero();
    }

    @Test
    void checkTellsProblemsInJson() throws IOException {
        Cli check = Cli.run("config", "check", bad, "--json");
        JsonNode answer = JSON.readTree(check.out());

        assertThat(check.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(answer.get("ok").asBoolean()).isFalse();
        assertThat(answer.get("problems")).hasSize(2);
        assertThat(answer.at("/problems/0/line").asInt()).isEqualTo(2);
        assertThat(answer.at("/problems/0/key").asText()).isEqualTo("model.widht");
    }

    @Test
    void aMissingFileIsBadInput() {
        Cli check = Cli.run("config", "check", folder.resolve("nowhere.conf").toString());

        assertThat(check.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(check.err()).contains("nowhere.conf: no such file");
    }

    @Test
    void keysListsEveryKeyWithItsMeaning() {
        Cli keys = Cli.run("config", "keys");

        assertThat(keys.exitCode()).isEqualTo(ExitCode.OK);
        assertThat(keys.out())
                .contains("# transformer blocks, all of the family's own kind, or the kind of each")
                .contains("\n  layers = 4\n")
                .contains("data-plane {");
    }

    @Test
    void keysAnswerProgramsInJson() throws IOException {
        JsonNode keys = JSON.readTree(Cli.run("config", "keys", "--json").out()).get("keys");

        assertThat(keys.findValuesAsText("key")).contains("run.seed", "data-plane.term-length");
        for (JsonNode key : keys) {
            if (key.get("key").asText().equals("model.layers")) {
                assertThat(key.get("standard").asText()).isEqualTo("4");
                assertThat(key.get("takes").asText()).startsWith("an integer");
                assertThat(key.get("meaning").asText()).startsWith("transformer blocks");
            }
        }
        assertThat(Cli.run("config", "keys", "--json", "--markdown").exitCode())
                .isEqualTo(ExitCode.BAD_INPUT);
    }

    private String write(String name, String text) throws IOException {
        return Files.writeString(folder.resolve(name), text).toString();
    }
}
