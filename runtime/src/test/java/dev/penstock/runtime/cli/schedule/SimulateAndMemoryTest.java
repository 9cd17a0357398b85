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

/** Critical path, traffic, stragglers and memory in bytes, from the command line. */
class SimulateAndMemoryTest {
    private static final JsonMapper JSON = JsonMapper.builder().build();
    private static final String[] GPIPE = {"--kind=gpipe", "--ranks=2", "--micro-batches=2"};

    @Test
    void simulateTellsTheCriticalPathInShort() throws IOException {
        String[] costs = with(GPIPE, "--costs=forward=3,backward=5,transfer=2");

        JsonNode path = simulated(costs).get("criticalPath");
        Cli forPeople = Cli.run(with(new String[] {"schedule", "simulate"}, costs));

        assertThat(path.get("makespanNanos").asLong()).isEqualTo(28);
        assertThat(path.at("/shares/0/kind").asText()).isEqualTo("backward");
        assertThat(path.at("/shares/0/share").asDouble()).isEqualTo(15 / 28.0);
        assertThat(path.at("/legs/2/rank").asInt()).isEqualTo(1);
        assertThat(path.at("/legs/2/firstOp").asText()).isEqualTo("1F0");
        assertThat(forPeople.out())
                .contains(
                        "critical path: backward 53.6 %, forward 32.1 %, transfer 14.3 %",
                        "  5 to 16: rank 1, 1F0 .. 1B0 (3 ops)", "  3 to 5: rank 0, transfer 0F0");
    }

    @Test
    void aLongPathIsCutInTheMiddle() {
        Cli simulate =
                Cli.run("schedule", "simulate", "--kind=1f1b", "--ranks=9", "--micro-batches=9");

        assertThat(
                        simulate.out()
                                .lines()
                                .filter(line -> line.contains(" to ") && line.contains(": rank")))
                .hasSize(12);
        assertThat(simulate.out()).contains("  ... 5 more");
    }

    @Test
    void simulateCountsWhatTravels() throws IOException {
        JsonNode tensors = simulated(GPIPE);
        JsonNode bytes =
                simulated(with(GPIPE, "--hardware=../sample-configs/hardware/4-laptops.conf"));

        assertThat(tensors.at("/links/0/volume/tensors").asInt()).isEqualTo(2);
        assertThat(tensors.at("/links/0/volume/bytes").isNull()).isTrue();
        assertThat(tensors.at("/ranks/1/received/tensors").asInt()).isEqualTo(2);
        // 1,024 tokens of 768 numbers of so many bytes as the cluster says
        long each = bytes.at("/links/1/volume/bytes").asLong() / 2 / 1_024 / 768;
        assertThat(each).isIn(2L, 4L);
        assertThat(bytes.at("/links/1/volume/bytes").asLong()).isEqualTo(each * 2 * 1_024 * 768);
        assertThat(bytes.at("/ranks/0/sent/bytes")).isEqualTo(bytes.at("/links/0/volume/bytes"));
    }

    @Test
    void simulateCountsGathersAndReductions() throws IOException {
        JsonNode answer = simulated(with(GPIPE, "--gathers=per-op", "--reduce=per-micro-batch"));

        assertThat(answer.at("/ranks/0/gathers").asInt()).isEqualTo(4);
        assertThat(answer.at("/ranks/0/reductions").asInt()).isEqualTo(2);
    }

    /** All four ranks of the run, not only those of its order. */
    @Test
    void simulateCountsWhatTheRunOfAConfigurationSends() throws IOException {
        String[] grid = {
            "../sample-configs/quickstart.conf",
            "--set=parallel={tensor=2, data=2, zero {stage=3, residency=pass}}",
            "--set=pipeline.stages=2"
        };

        JsonNode answer = simulated(grid);
        JsonNode check =
                JSON.readTree(
                        Cli.run(with(new String[] {"config", "check", "--json"}, grid)).out());
        Cli forPeople = Cli.run(with(new String[] {"schedule", "simulate"}, grid));

        assertThat(answer.get("sentBytes")).hasSize(8).isEqualTo(check.get("sentBytes"));
        assertThat(answer.at("/sentBytes/7/parameter gathers").asLong()).isPositive();
        assertThat(answer.at("/ranks/0/gathers").asInt()).isPositive();
        assertThat(forPeople.out())
                .contains("bytes sent per training step:")
                .containsPattern("rank.* 0.*: activations .*, tensor sums .*, gradient sums .*");
        assertThat(simulated(with(grid, "--split-backward")).get("sentBytes")).isEmpty();
    }

    /** Two replicas have half the work each, on laptops of one kind; shards send to each other. */
    @Test
    void hardwareIsDividedAsTheConfigurationSays() throws IOException {
        String[] alone = {
            "../sample-configs/quickstart.conf",
            "--set=pipeline.stages=2",
            "--hardware=../sample-configs/hardware/4-laptops.conf"
        };

        JsonNode whole = simulated(alone);
        JsonNode replicas = simulated(with(alone, "--set=parallel.data=2"));
        JsonNode shards = simulated(with(alone, "--set=parallel.tensor=2"));

        assertThat(whole.get("sentBytes")).hasSize(2);
        assertThat(simulated(with(alone, "--model=gpt2-124m")).get("sentBytes")).isEmpty();
        long work = whole.at("/ranks/0/busy").asLong();
        assertThat(replicas.at("/ranks/0/busy").asLong()).isEqualTo(work / 2);
        // a shard sends what the stage has, unless shards divide sequences
        long boundary = whole.at("/links/0/volume/bytes").asLong();
        assertThat(shards.at("/links/0/volume/bytes").asLong()).isEqualTo(boundary);
        assertThat(
                        simulated(with(alone, "--set=parallel { tensor = 2, sequence = true }"))
                                .at("/links/0/volume/bytes")
                                .asLong())
                .isEqualTo(boundary / 2);
        // every block sums twice forward and twice backward
        assertThat(shards.at("/ranks/0/busy").asLong()).isGreaterThan(work);
        assertThat(refused("simulate", with(alone, "--set=parallel.data=4")))
                .contains("at least 8 devices");
    }

    /** Nothing is summed in a step; over 10 Mbit/s every byte of a parameter takes 800 ns. */
    @Test
    void replicasThatTakeStepsAloneWaitForWhatTheyExchange() throws IOException {
        String[] run = {
            "../sample-configs/quickstart.conf",
            "--hardware=../sample-configs/hardware/4-laptops.conf",
            "--set=pipeline.stages=1",
            "--set=data-plane.emulate.bandwidth=10 Mbit/s",
            "--set=parallel={data=2, outer.every=50}"
        };
        long parameters = simulatedParameters(run);

        JsonNode atOnce = simulated(run).get("exchanging");
        JsonNode late = simulated(with(run, "--set=parallel.outer.lag=2")).get("exchanging");
        String words = Cli.run(with(new String[] {"schedule", "simulate"}, run)).out();

        long alone = atOnce.get("alone").asLong();
        // two replicas send half of the bytes and then the other half
        long exchange = parameters * 4 * 800;
        assertThat(atOnce.at("/behind/0").asLong()).isEqualTo(alone + exchange);
        assertThat(atOnce.get("mean").asDouble()).isEqualTo(alone + exchange / 50.0);
        assertThat(late.at("/behind/0").asLong())
                .isEqualTo(alone + Math.max(0, exchange - 2 * alone));
        assertThat(words).contains("with what replicas exchange: makespan ");
    }

    /** By what a rank is predicted to send: of each parameter four bytes. */
    private static long simulatedParameters(String[] run) throws IOException {
        return simulated(run).at("/sentBytes/0/outer gradients").asLong() / 4;
    }

    /** By ops or block by block, the same work is done again; by which ops changes who waits. */
    @Test
    void hardwareRunsAgainAndGathersWhatTheConfigurationSays() throws IOException {
        String[] run = {
            "../sample-configs/zero.conf", "--hardware=../sample-configs/hardware/4-laptops.conf"
        };

        long kept = busy(run);
        long units = busy(with(run, "--set=schedule.recompute=full"));
        long blocks = busy(with(run, "--set=schedule.recompute=blocks"));
        long once = makespan(with(run, "--set=parallel.zero.residency=step"));
        long often = makespan(with(run, "--set=parallel.zero.residency=micro-batch"));

        assertThat(blocks).isEqualTo(units).isGreaterThan(kept);
        assertThat(often).isGreaterThan(2 * once);
        assertThat(refused("simulate", with(run, "--set=parallel { data = 1, context = 2 }")))
                .contains("does not support context parallelism", "parallel.context = 1, got 2");
    }

    private static long busy(String[] run) throws IOException {
        return simulated(run).at("/ranks/0/busy").asLong();
    }

    private static long makespan(String[] run) throws IOException {
        return simulated(run).get("makespan").asLong();
    }

    @Test
    void aStragglerMakesEverybodyWait() throws IOException {
        JsonNode slow = simulated(with(GPIPE, "--straggler=1=2"));
        JsonNode both = simulated(with(GPIPE, "--straggler=1=2", "--straggler=0=2"));

        // (M + P - 1) 3 without; the last rank takes 2 x 3 x 2, rank 0 one forward and backward
        assertThat(slow.get("makespanWithoutStragglers").asLong()).isEqualTo(9);
        assertThat(slow.get("makespan").asLong()).isEqualTo(12 + 3);
        assertThat(both.get("makespan").asLong()).isEqualTo(18);
    }

    @Test
    void memoryMayBeBytesOfAModel() throws IOException {
        String[] model = with(GPIPE, "--model=gpt2-124m", "--batch=8", "--json");

        JsonNode fits = validated(with(model, "--memory=8GiB"));
        JsonNode tooMuch = validated(with(model, "--memory=8GiB,1GiB"));

        assertThat(fits.get("valid").asBoolean()).isTrue();
        JsonNode violation = tooMuch.at("/violations/0");
        assertThat(violation.get("kind").asText()).isEqualTo("MemoryExceeded");
        assertThat(violation.get("rank").asInt()).isEqualTo(1);
        assertThat(violation.get("op").asText()).isEqualTo("1F1");
        assertThat(violation.get("limitBytes").asLong()).isEqualTo(1L << 30);
        // 8 sequences of 34 s h on 6 blocks, and 16 bytes of each of 6 blocks and the tied head
        long activations = 8L * 34 * 1_024 * 768 * 6;
        long state = 16L * (6 * (12L * 768 * 768 + 13 * 768) + 50_257L * 768);
        assertThat(violation.get("bytes").asLong())
                .isGreaterThan(activations + state)
                .isLessThan((long) (1.6 * (activations + state)));
        assertThat(violation.get("message").asText()).contains("rank 1 holds", "1.0 GiB");
    }

    @Test
    void recomputeAndGathersMakeItFit() throws IOException {
        String[] model = with(GPIPE, "--model=gpt2-124m", "--batch=64", "--json", "--memory=14GiB");

        assertThat(validated(model).get("valid").asBoolean()).isFalse();
        assertThat(validated(with(model, "--recompute=full")).get("valid").asBoolean()).isTrue();

        String[] state =
                with(GPIPE, "--model=gpt3-13b", "--json", "--memory=40GiB", "--replicas=16");

        assertThat(validated(state).get("valid").asBoolean()).isFalse();
        assertThat(validated(with(state, "--gathers=per-pass")).get("valid").asBoolean()).isTrue();
    }

    @Test
    void aConfigurationsOwnModelIsCounted() throws IOException {
        String quickstart = "../sample-configs/quickstart.conf";

        assertThat(validated(quickstart, "--memory=4GiB", "--json").get("valid").asBoolean())
                .isTrue();
        JsonNode tight = validated(quickstart, "--memory=1MiB", "--json");
        assertThat(tight.at("/violations/0/limitBytes").asLong()).isEqualTo(1L << 20);
    }

    @Test
    void everyMisuseIsSaid() {
        assertThat(refused("simulate", with(GPIPE, "--straggler=2", "--straggler=7=2")))
                .contains("such as 2=1.5, got 2", "a rank from 0 to 1, got 7");
        String[] options = {"--costs=forward=x", "--straggler=2", "--profile=no-run", "--ranks=0"};
        assertThat(refused("simulate", with(options, "no-order.csv")))
                .as("files and options at once")
                .contains("no-order.csv", "--costs: ", "such as 2=1.5, got 2", "no-run");
        assertThat(refused("draw", with(options, "--kind=gpipe")))
                .contains("--ranks: expected 1", "--costs: ", "such as 2=1.5, got 2", "no-run");
        assertThat(refused("validate", with(GPIPE, "--memory=8GiB"))).contains("try --model");
        assertThat(refused("validate", with(GPIPE, "--memory=0")))
                .contains("--memory of 1 or more");
        assertThat(refused("validate", with(GPIPE, "--memory=8 parsecs", "--model=m", "--batch=3")))
                .contains("got 8 parsecs", "--model: expected one of", "a multiple of 2");
        assertThat(refused("validate", with(GPIPE, "--memory=1GB,1GB,1GB", "--model=gpt2-124m")))
                .contains("one for each of 2 ranks, got 3");
        assertThat(refused("validate", with(GPIPE, "--model=gpt2-124m"))).contains("--memory");
    }

    private static String refused(String command, String... arguments) {
        Cli answer = Cli.run(with(new String[] {"schedule", command}, arguments));
        assertThat(answer.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        return answer.err();
    }

    private static JsonNode validated(String... arguments) throws IOException {
        Cli answer = Cli.run(with(new String[] {"schedule", "validate"}, arguments));
        assertThat(answer.err()).isEmpty();
        return JSON.readTree(answer.out());
    }

    private static JsonNode simulated(String... arguments) throws IOException {
        Cli answer = Cli.run(with(new String[] {"schedule", "simulate", "--json"}, arguments));
        assertThat(answer.err()).isEmpty();
        return JSON.readTree(answer.out());
    }

    private static String[] with(String[] first, String... more) {
        var all = new ArrayList<>(List.of(first));
        all.addAll(List.of(more));
        return all.toArray(String[]::new);
    }

    @Test
    void simulateUsesEmulatedLinksAndNamesTheBestCodec(@TempDir Path folder) throws IOException {
        Files.writeString(folder.resolve("text.txt"), "some text");
        Path run =
                Files.writeString(
                        folder.resolve("run.conf"),
                        """
                        model { context = 128, width = 256, layers = 4, heads = 4 }
                        data { source = text.txt, tokenizer = bytes }
                        batch { sequences = 16, micro-batches = 8 }
                        pipeline.stages = 2
                        data-plane.emulate.bandwidth = 10 Mbit/s
                        """);
        String[] hardware = {
            run.toString(), "--hardware=../sample-configs/hardware/4-laptops.conf"
        };

        long makespan = simulated(hardware).get("makespan").asLong();
        Cli forPeople = Cli.run(with(new String[] {"schedule", "simulate"}, hardware));

        // 8 activations of 262,144 bytes, a gradient and that of the token table, 800 ns a byte
        assertThat(makespan).isBetween(10L * 262_144 * 800, 11L * 262_144 * 800);
        assertThat(forPeople.out())
                .containsPattern(
                        "best codec: int8: over 10 Mbit/s a step takes [0-9.]+ ms instead of [0-9.]+ s");
    }

    @Test
    void theUpdateThatAProfileHoldsIsPartOfTheStepThatIsMeasured(@TempDir Path run)
            throws IOException {
        String ops = "penstock profile 1\nforward 0s0 1000\nbackward 0s0 2000\n";
        String[] simulate = {
            "schedule",
            "simulate",
            "--kind=gpipe",
            "--ranks=1",
            "--micro-batches=4",
            "--profile=" + run
        };
        Files.writeString(run.resolve("profile.txt"), ops + "update 700\n");

        String out = Cli.run(simulate).out();

        assertThat(out)
                .contains("makespan 12000,")
                .contains("with the commit and the update that follow, as measured: step 12700");
        Files.writeString(run.resolve("profile.txt"), ops);
        assertThat(Cli.run(simulate).out()).contains("makespan 12000,").doesNotContain("step 1");
    }
}
