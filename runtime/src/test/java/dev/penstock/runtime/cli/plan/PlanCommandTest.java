package dev.penstock.runtime.cli.plan;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.withinPercentage;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.launch.RunParts;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class PlanCommandTest {
    private static final String LAPTOPS = "../sample-configs/hardware/4-laptops.conf";
    private static final String SMALL = "layers=4,width=256,heads=4,vocabulary=256,sequence=256";
    private static final String MODEL =
            """
            model { layers = 4, width = 256, heads = 4, vocabulary = 256, context = 256, tied = true }
            data { source = pom.xml, tokenizer = bytes }
            """;
    private static final JsonMapper JSON = JsonMapper.builder().build();

    @TempDir Path folder;

    private static Cli plan(String... arguments) {
        String[] all = new String[arguments.length + 1];
        all[0] = "plan";
        System.arraycopy(arguments, 0, all, 1, arguments.length);
        return Cli.run(all);
    }

    @Test
    void printsRankedPlansTheirReasonsAndASnippet() {
        Cli plan = plan("--hardware", LAPTOPS, "--model", SMALL, "--batch", "4", "--top", "3");

        assertThat(plan.err()).isEmpty();
        assertThat(plan.exitCode()).isEqualTo(ExitCode.OK);
        assertThat(plan.out())
                .contains("on 4 laptops (4 devices), 4 sequences of 256 tokens a step")
                .containsPattern("(?m)^ 1 +[0-9.]+ m?s")
                .containsPattern("(?m)^ 3 +[0-9.]+ m?s")
                .contains(
                        "The runner-up, ", "pipeline {", "partition = [", "schedule {", "batch {");
    }

    @Test
    void showsWhereAMeshOfTensorShardsIsFasterThanALine() {
        Cli small = plan("--hardware", LAPTOPS, "--model", SMALL, "--batch", "4", "--meshes");
        Cli large = plan("--hardware", LAPTOPS, "--model", SMALL, "--batch", "24", "--meshes");

        assertThat(small.exitCode()).as(small.err()).isEqualTo(ExitCode.OK);
        assertThat(small.out())
                .contains("4 shards: a line is faster, whatever the micro-batch")
                .contains(
                        "16 shards: 2d is faster from 24.0 tokens for each column of the width on, 6,144 tokens (here 1,024: a line)")
                .contains(
                        "64 shards: 2d is faster from 3.4 tokens for each column of the width on, 878 tokens (here 1,024: 2d)");
        assertThat(large.out()).contains("6,144 tokens (here 6,144: 2d)");
    }

    @Test
    void answersProgramsInJson() throws IOException {
        Cli plan = plan("--hardware", LAPTOPS, "--model", SMALL, "--batch=4", "--top=2", "--json");
        JsonNode answer = JSON.readTree(plan.out());

        assertThat(answer.get("plans")).hasSize(2);
        JsonNode first = answer.at("/plans/0");
        assertThat(first.get("stepNanos").asLong())
                .isPositive()
                .isLessThanOrEqualTo(
                        (long) (1.02 * answer.at("/plans/1/stepNanos").asLong())); // near or faster
        int layers = 0;
        for (JsonNode blocks : first.get("partition")) {
            layers += blocks.asInt();
        }
        assertThat(layers).isEqualTo(4);
        assertThat(answer.get("complete").asBoolean()).isTrue();
        assertThat(answer.get("explanation")).isNotEmpty();
        assertThat(answer.get("config").asText()).contains("kind = " + first.get("kind").asText());
        for (JsonNode rank : first.get("memory")) {
            assertThat(rank.get("state").asLong()).isLessThan(rank.get("capacity").asLong());
        }
    }

    @Test
    void showsTwoPlansOfAFamilyAndAllOfThemWhenAsked() throws IOException {
        String[] request = {"--hardware", LAPTOPS, "--model", SMALL, "--batch=4", "--top=12"};

        JsonNode few = JSON.readTree(plan(with(request, "--json")).out()).get("plans");
        JsonNode all = JSON.readTree(plan(with(request, "--json", "--all")).out()).get("plans");

        assertThat(few).hasSize(12);
        assertThat(mostOfAFamily(few)).isLessThanOrEqualTo(2);
        assertThat(all).hasSize(12);
        assertThat(mostOfAFamily(all)).isGreaterThan(2);
        assertThat(all.get(0)).isEqualTo(few.get(0));
    }

    private static String[] with(String[] arguments, String... more) {
        return Stream.concat(Stream.of(arguments), Stream.of(more)).toArray(String[]::new);
    }

    private static long mostOfAFamily(JsonNode plans) {
        Map<String, Long> families = new HashMap<>();
        for (JsonNode plan : plans) {
            int stages = plan.get("pipeline").asInt() * plan.get("chunks").asInt();
            families.merge(plan.get("kind").asText() + stages, 1L, Long::sum);
        }
        return families.values().stream().mapToLong(n -> n).max().orElseThrow();
    }

    @Test
    void theSnippetIsWhatARunTakes() throws IOException {
        Cli plan = plan("--hardware", LAPTOPS, "--model", SMALL, "--batch=8", "--top=1", "--json");
        JsonNode answer = JSON.readTree(plan.out());

        RunConfig config = ConfigLoader.load(run(answer), List.of());

        JsonNode first = answer.at("/plans/0");
        assertThat(config.schedule().kind().word()).isEqualTo(first.get("kind").asText());
        assertThat(config.pipeline().stages()).isEqualTo(first.get("pipeline").asInt());
        assertThat(config.pipeline().partition().layers().orElseThrow())
                .hasSameSizeAs(first.get("partition"));
        assertThat(config.batch().microBatches()).isEqualTo(first.get("microBatches").asInt());
    }

    /**
     * Links so fast and batches so small that replicas pay, and so little memory that they divide
     * what they hold.
     */
    @Test
    void theSnippetHasReplicasShardsAndZeroAsTheyWerePlanned() throws IOException {
        Path rack =
                Files.writeString(
                        folder.resolve("rack.conf"),
                        """
                        nodes = [{ name = rack, count = 1, devices = 8, memory = 60 MiB,
                                   peak-tflops = 0.01, memory-bandwidth = 50 GB,
                                   link-bandwidth = 400 GB, link-latency = 1 us }]
                        """);
        Cli plan = plan("--hardware=" + rack, "--model", SMALL, "--batch=4", "--top=1", "--json");
        assertThat(plan.err()).isEmpty();
        JsonNode answer = JSON.readTree(plan.out());
        JsonNode first = answer.at("/plans/0");
        assertThat(first.get("data").asInt()).isGreaterThan(1);

        Path run = run(answer);
        RunConfig config = ConfigLoader.load(run, List.of());

        assertThat(config.grid().data()).isEqualTo(first.get("data").asInt());
        assertThat(config.grid().tensor()).isEqualTo(first.get("tensor").asInt());
        assertThat(config.parallel().zeroStage()).isEqualTo(first.get("zeroStage").asInt());
        assertThat(config.batch().sequences()).isEqualTo(4);
        assertThat(config.microBatchesOfReplica()).isEqualTo(first.get("microBatches").asInt());

        JsonNode sent = answer.get("sentBytes");
        assertThat(sent).hasSize(config.grid().ranks());
        assertThat(sent.at("/0/gradient sums").asLong()).isPositive();
        Cli check =
                Cli.run(
                        "config",
                        "check",
                        run.toString(),
                        "--json",
                        "--set=model={layers=4, width=256, heads=4, vocabulary=256, context=256}");
        assertThat(JSON.readTree(check.out()).get("sentBytes")).isEqualTo(sent);
    }

    @Test
    void slowDevicesShareAStageOfTheRun() throws IOException {
        Path desk =
                Files.writeString(
                        folder.resolve("desk.conf"),
                        """
                        nodes = [
                          { name = fast, count = 1, memory = 1 GiB, peak-tflops = 2,
                            memory-bandwidth = 200 GB },
                          { name = slow, count = 1, devices = 2, memory = 1 GiB, peak-tflops = 1,
                            memory-bandwidth = 100 GB, link-bandwidth = 100 GB, link-latency = 1 us }
                        ]
                        network = { bandwidth = 20 GB, latency = 300 us }
                        """);
        Cli plan =
                plan("--hardware=" + desk, "--model", SMALL + ",tied=false", "--batch=2", "--json");
        assertThat(plan.err()).isEmpty();
        JsonNode answer = JSON.readTree(plan.out());

        Path run = run(answer);

        assertThat(answer.get("config").asText()).contains("tensor = [1, 2]");
        assertThat(answer.at("/plans/0/shards").toString()).isEqualTo("[1,2]");
        RunConfig config = ConfigLoader.load(run, List.of("model.tied=false"));
        assertThat(config.grid().shards()).containsExactly(1, 2);
        Cli check =
                Cli.run(
                        "config",
                        "check",
                        run.toString(),
                        "--json",
                        "--set=model={layers=4, width=256, heads=4, vocabulary=256, context=256, tied=false}");
        assertThat(JSON.readTree(check.out()).get("sentBytes")).isEqualTo(answer.get("sentBytes"));
    }

    @Test
    void tellsWhatRanksWouldSend() {
        Cli plan = plan("--hardware", LAPTOPS, "--model", SMALL, "--batch=8", "--top=1");

        assertThat(plan.out())
                .contains("# bytes sent per training step:")
                .containsPattern("#   ranks? [0-9-, ]+: activations [0-9.]+ MiB");
    }

    @Test
    void whatAPlanDoesNotKnowOfARunIsSaid() throws IOException {
        Path lengths = Path.of("../sample-configs/lengths.conf").toAbsolutePath().normalize();
        Path frozen =
                Files.writeString(
                        folder.resolve("frozen.conf"),
                        """
                        include required(file("%s"))
                        data.packing = padded
                        fine-tune.freeze = ["w*", "h.0.*"]
                        """
                                .formatted(lengths));
        String devices = "--hardware=" + LAPTOPS;

        Cli unequal = plan(devices, "--model=" + lengths, "--batch=16", "--top=1");
        Cli some = plan(devices, "--model=" + frozen, "--batch=16", "--top=1");
        Cli usual = plan(devices, "--model=../sample-configs/quickstart.conf", "--batch=16");

        assertThat(unequal.out())
                .contains("Planned for full rows of 128 tokens: data.packing = lengths")
                .contains("penstock schedule simulate " + lengths);
        assertThat(some.out()).contains("Each block counts the mean of all: 3 of 4 are trained");
        assertThat(usual.out()).doesNotContain("full rows", "the mean of all");
    }

    private Path run(JsonNode answer) throws IOException {
        Path quickstart = Path.of("../sample-configs/quickstart.conf").toAbsolutePath().normalize();
        return Files.writeString(
                folder.resolve("run.conf"),
                Files.readString(quickstart).replace("data/", quickstart.getParent() + "/data/")
                        + answer.get("config").asText());
    }

    /** Whatever a cluster's file says of rates, a plan takes as long as the profiled run did. */
    @Test
    void aProfileDecidesHowFastDevicesAre() throws IOException {
        Path quickstart = ran("");

        long slowOnPaper = profiledStep(quickstart, 0.1, 20_000_000);
        long fastOnPaper = profiledStep(quickstart, 20, 20_000_000);
        long slower = profiledStep(quickstart, 1, 40_000_000);

        // 8 micro-batches of 20 ms forward and 30 ms backward; the update of parameters beside it
        assertThat(slowOnPaper).isBetween(400_000_000L, 480_000_000L);
        assertThat(fastOnPaper).isCloseTo(slowOnPaper, withinPercentage(0.1));
        assertThat(slower).isCloseTo(2 * slowOnPaper, withinPercentage(0.1));
    }

    /** Who did more in the same time is faster. */
    @Test
    void blocksThatRanAgainAreWorkThatAProfileShows() throws IOException {
        List<Double> speeds = new ArrayList<>();
        for (String recompute : List.of("none", "[1]", "[0, 1, 2]", "blocks")) {
            JsonNode answer = profiled(ran("schedule.recompute = " + recompute), 1, 20_000_000);
            String measured = answer.at("/explanation/0").asText();
            assertThat(measured).matches(".+: [0-9.e+-]+x the cluster file's rates .+");
            speeds.add(Double.parseDouble(measured.replaceFirst(".+: ([0-9.e+-]+)x .+", "$1")));
        }

        assertThat(speeds).doesNotHaveDuplicates().isSorted();
    }

    /** What a run of the quickstart on one device leaves of its configuration. */
    private Path ran(String setting) throws IOException {
        Path quickstart = Path.of("../sample-configs/quickstart.conf").toAbsolutePath().normalize();
        Files.writeString(
                folder.resolve("resolved.conf"),
                Files.readString(quickstart).replace("data/", quickstart.getParent() + "/data/")
                        + "pipeline.stages = 1\nbatch { sequences = 8, micro-batches = 8 }\n"
                        + setting);
        return quickstart;
    }

    private long profiledStep(Path model, double rate, long forward) throws IOException {
        return profiled(model, rate, forward).at("/plans/0/stepNanos").asLong();
    }

    private JsonNode profiled(Path model, double rate, long forward) throws IOException {
        Files.writeString(
                folder.resolve("profile.txt"),
                "penstock profile 1\nforward 0s0 %d\nbackward 0s0 %d\n"
                        .formatted(forward, forward / 2 * 3));
        Cli plan =
                plan(
                        "--hardware=" + box(rate),
                        "--model=" + model,
                        "--batch=8",
                        "--top=1",
                        "--json",
                        "--profile=box=" + folder);
        assertThat(plan.err()).isEmpty();
        JsonNode answer = JSON.readTree(plan.out());
        assertThat(answer.get("explanation").get(0).asText()).startsWith("box: ");
        return answer;
    }

    @Test
    void profilesThatSayNothingAreAnsweredAtOnce() throws IOException {
        Cli plan =
                plan(
                        "--hardware=" + box(1),
                        "--model=" + SMALL,
                        "--batch=8",
                        "--profile=boxx=runs/none",
                        "--profile=" + folder.resolve("none"));

        assertThat(plan.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(plan.err())
                .contains(
                        "2 problems",
                        "NODE=RUN_DIR with one of box, got boxx=",
                        "cannot read the profile of a run, ");
    }

    private Path box(double rate) throws IOException {
        return Files.writeString(
                folder.resolve("box.conf"),
                "nodes = [{ name = box, memory = 64 GiB, peak-tflops = %s, memory-bandwidth = %s GB }]"
                        .formatted(rate, 10 * rate));
    }

    @Test
    void takesAModelByNameByFileAndBySizes() throws IOException {
        Path tiny =
                Files.writeString(
                        folder.resolve("box.conf"),
                        "nodes = [{ name = box, memory = 64 GiB, peak-tflops = 10,"
                                + " memory-bandwidth = 100 GB }]");
        for (String model :
                new String[] {"gpt2-124m", "../sample-configs/quickstart.conf", SMALL}) {
            Cli plan =
                    plan("--hardware", tiny.toString(), "--model", model, "--batch=1", "--top=1");

            assertThat(plan.err()).isEmpty();
            assertThat(plan.out()).contains("1 devices");
        }
        Cli longer = plan("--hardware=" + tiny, "--model=" + SMALL, "--batch=1", "--sequence=512");
        assertThat(longer.out()).contains("1 sequences of 512 tokens");
    }

    /** What a run of the plan would send is what the run itself expects. */
    @Test
    void aLlamaIsPlannedAsItIsRun() throws IOException {
        String model =
                "model={family=llama, layers=4, width=256, heads=4, key-heads=2, hidden=320,"
                        + " vocabulary=256, context=256, tied=false}";
        Path llama =
                Files.writeString(
                        folder.resolve("llama.conf"),
                        "data.source = ../sample-configs/quickstart.conf\n" + model);

        Cli plan = plan("--hardware", LAPTOPS, "--model=" + llama, "--batch=8", "--json");

        assertThat(plan.err()).isEmpty();
        JsonNode answer = JSON.readTree(plan.out());
        assertThat(answer.get("parameters").asLong())
                .isEqualTo(
                        2 * 256 * 256
                                + 256
                                + 4 * (256 * (256 + 2 * 128) + 256 * 256 + 3 * 256 * 320 + 512));
        Cli check = Cli.run("config", "check", run(answer).toString(), "--json", "--set=" + model);
        assertThat(JSON.readTree(check.out()).get("sentBytes"))
                .isNotEmpty()
                .isEqualTo(answer.get("sentBytes"));
    }

    /**
     * Its state alone is 50 MiB: no plan fits, but what swaps does; a plan with 58 MiB recomputes.
     */
    @ParameterizedTest
    @CsvSource({"45, swap everything, false", "58, optimizer state in 8 bits, true"})
    void whereTheModelDoesNotFitAsItIsTheWaysThatDoFollow(
            int mebibytes, String expected, boolean planned) throws IOException {
        Path box =
                Files.writeString(
                        folder.resolve("box.conf"),
                        "nodes = [{ name = box, memory = %d MiB, peak-tflops = 0.05, memory-bandwidth = 5 GB }]"
                                .formatted(mebibytes));
        String[] request = {"--hardware=" + box, "--model", SMALL, "--batch=16", "--top=9"};

        Cli shown = plan(request);
        JsonNode answer = JSON.readTree(plan(with(request, "--json")).out());

        assertThat(shown.exitCode()).isEqualTo(ExitCode.OK);
        assertThat(shown.out()).contains("one device, " + expected);
        assertThat(answer.get("plans").isEmpty()).isEqualTo(!planned);
        List<String> names = new ArrayList<>();
        for (JsonNode way : answer.get("ways")) {
            names.add(way.get("name").asText());
            List<String> settings = new ArrayList<>();
            way.get("settings").forEach(setting -> settings.add(setting.asText()));
            var proof = RunParts.proof(ConfigLoader.loadOfRun("run", MODEL, settings));
            assertThat(way.get("heldBytes").asLong()).isLessThanOrEqualTo((long) mebibytes << 20);
            if (!way.get("name").asText().startsWith("fit")) { // which is chosen before the proof
                assertThat(proof.held().largest()).isEqualTo(way.get("heldBytes").asLong());
            }
        }
        assertThat(names).contains(expected);
    }

    @Test
    void saysHowMuchIsMissingWhereNothingFits() throws IOException {
        Path small =
                Files.writeString(
                        folder.resolve("small.conf"),
                        "nodes = [{ name = toaster, memory = 64 MiB, peak-tflops = 1,"
                                + " memory-bandwidth = 1 GB }]");

        Cli plan = plan("--hardware", small.toString(), "--model", "gpt2-124m", "--batch", "1");

        assertThat(plan.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(plan.err())
                .containsPattern(
                        "no plan fits: the least memory any plan needs is [0-9.]+ GiB on toaster,"
                                + " which has 64.0 MiB");
    }

    @Test
    void saysEverythingThatIsWrongAtOnce() throws IOException {
        Path wrong =
                Files.writeString(
                        folder.resolve("wrong.conf"),
                        "nodes = [{ name = a, memory = 8 GiB, peak-tflop = 1,"
                                + " memory-bandwidth = 1 GB }]");

        Cli plan =
                plan(
                        "--hardware=" + wrong,
                        "--model=layers=0,wide=3",
                        "--batch=0",
                        "--top=0",
                        "--sequence=-1");

        assertThat(plan.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(plan.err())
                .contains("wrong.conf:1", "did you mean peak-tflops?", "layers=0", "wide=3")
                .contains("--batch: expected 1 to", "--top", "--sequence")
                .doesNotContain("at dev.penstock", "unexpected");
    }

    @Test
    void refusesModelsThatNobodyKnows() {
        Cli plan = plan("--hardware", LAPTOPS, "--model", "gpt5", "--batch", "1");
        Cli heads = plan("--hardware", LAPTOPS, "--model=layers=2,width=5,heads=2", "--batch=1");
        Cli short2 = plan("--hardware", LAPTOPS, "--model=layers=2", "--batch=1");

        assertThat(plan.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(plan.err()).contains("gpt2-124m", "gpt-1t", "got gpt5");
        assertThat(heads.err()).contains("width 5 and 2 heads");
        assertThat(short2.err()).contains("expected width, heads as well, got only layers=2");
    }

    @Test
    void helpShowsAnExample() {
        Cli help = plan("--help");

        assertThat(help.out())
                .contains("penstock plan --hardware sample-configs/hardware/4-laptops");
    }

    @ParameterizedTest
    @CsvSource({
        "800 Mbit/s, 'none: a step takes [0-9.]+ s, and '",
        "200 Mbit/s, 'fp16: a step takes [0-9.]+ s instead of [0-9.]+ s;'",
        "100 Mbit/s, 'int8: a step takes [0-9.]+ s instead of [0-9.]+ s;'"
    })
    void theCodecForTheLinksThatARunEmulatesIsNamedWithItsReason(String bandwidth, String reason)
            throws IOException {
        Files.writeString(folder.resolve("text.txt"), "some text");
        Path run =
                Files.writeString(
                        folder.resolve("run.conf"),
                        """
                        model { context = 1024, width = 768, layers = 12, heads = 12, vocabulary = 50257 }
                        data { source = text.txt, tokenizer = bytes }
                        data-plane.emulate { bandwidth = %s, latency = 5 ms }
                        """
                                .formatted(bandwidth));

        Cli plan = plan("--hardware", LAPTOPS, "--model", run.toString(), "--batch=16", "--top=1");

        assertThat(plan.out())
                .containsPattern("(?m)^data-plane.codec = " + reason)
                .contains(
                        "Links are emulated ones: %s, 5 ms, between all ranks"
                                .formatted(bandwidth));
    }
}
