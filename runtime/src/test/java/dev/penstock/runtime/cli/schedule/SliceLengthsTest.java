package dev.penstock.runtime.cli.schedule;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.generate.base.GenerateOptions;
import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.generate.base.SliceBalance;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.simulate.ComputeKind;
import dev.penstock.schedules.simulate.ProfileCosts;
import dev.penstock.schedules.simulate.ProfileLine;
import dev.penstock.schedules.simulate.ProfileText;
import dev.penstock.schedules.validate.ScheduleValidator;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Slices and costs that {@code schedule generate} works out or passes on. */
class SliceLengthsTest {
    private static final String LAPTOPS = "../sample-configs/hardware/4-laptops.conf";

    private static final int CONTEXT = 256;

    @TempDir Path folder;

    @Test
    void balancedSlicesAreThoseOfTheModelsWidth() {
        Cli generate =
                generate(
                        "seq1f1b",
                        "--slices=4",
                        "--slice-lengths=balanced",
                        "--tokens=2048",
                        "--model=layers=2,width=64,heads=1");

        List<Integer> lengths = SliceBalance.ofWidth(64).lengths(2_048, 4, 8);
        assertThat(order(generate).shape().sliceLengths()).isEqualTo(lengths);
        assertThat(generate.err())
                .contains("schedule.slice-lengths = " + lengths)
                .contains("off the blocks of 128");
    }

    @Test
    void slicesArePlannedForTheHardware() {
        Cli generate =
                generate(
                        "terapipe",
                        "--slice-lengths=planned",
                        "--hardware=../sample-configs/hardware/3072-a100.conf",
                        "--model=layers=32,width=2048,heads=16,sequence=4096");

        Schedule order = order(generate);
        assertThat(order.shape().sliceLengths()).hasSizeGreaterThan(1);
        assertThat(sum(order.shape().sliceLengths())).isEqualTo(4_096);
        assertThat(ScheduleValidator.validate(order).violations()).isEmpty();
        assertThat(generate.err())
                .contains("predicted step of terapipe: ")
                .contains("on 4 stages; the best equal slices, ")
                .contains("nothing was fitted");
    }

    @Test
    void slicesArePlannedFromWhatRunsMeasured() throws IOException {
        String runs =
                Stream.of(run(1, 2), run(2, 2), run(3, 2), run(4, 2))
                        .map(Path::toString)
                        .reduce((a, b) -> a + "," + b)
                        .orElseThrow();

        Cli generate =
                generate(
                        "terapipe",
                        "--ranks=2",
                        "--micro-batches=1",
                        "--slice-lengths=planned",
                        "--profile=" + runs);

        List<Integer> lengths = order(generate).shape().sliceLengths();
        assertThat(sum(lengths)).isEqualTo(CONTEXT);
        assertThat(lengths).hasSizeGreaterThan(1).allMatch(length -> length % 8 == 0);
        // the runs' law is of the form that is fitted, lines between its lengths included
        assertThat(generate.err())
                .contains("fitted to 6 measured slices: error 0.0 % on average, 0.0 % at worst");
    }

    @Test
    void runsThatDoNotDecideTheCostsAreAnsweredWithThoseThatWould() throws IOException {
        Path whole = run(1, 2);
        Path halves = run(2, 2);
        Path threeStages = run(4, 3);

        Cli one = planned("--profile=" + whole);
        Cli few = planned("--profile=" + whole + "," + halves);
        Cli other = planned("--profile=" + halves + "," + threeStages);

        assertThat(List.of(one, few, other))
                .extracting(Cli::exitCode)
                .containsOnly(ExitCode.BAD_INPUT);
        assertThat(one.err()).contains("expected runs with slices, got whole sequences", "1, 2, 3");
        assertThat(few.err()).contains("4 coefficients, got 1 samples", "1, 2, 3 and 4");
        assertThat(other.err())
                .contains("expected a run of 2 stages, like the order to be generated, got 3")
                .contains("runs of the same shape");
    }

    @Test
    void planningNeedsTimesOfSlicesOfAnyLength() {
        for (List<String> options : List.of(List.<String>of(), List.of("--costs=forward=2"))) {
            Cli generate = planned(options.toArray(String[]::new));

            assertThat(generate.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
            assertThat(generate.err()).contains("--hardware, or from several runs with --profile");
        }
        assertThat(generate("terapipe", "--slice-lengths=balanced", "--tokens=0").err())
                .contains("--tokens: expected 1 to 67108864, got 0");
        assertThat(generate("terapipe", "--slice-lengths=balanced", "--tokens=100").err())
                .contains("in multiples of 8 tokens");
    }

    @Test
    void searchedKindsTakeCosts() {
        Cli plain = generate("zb-1p", "--ranks=3", "--micro-batches=6", "--compute-only");
        Cli costly =
                generate(
                        "zb-1p",
                        "--ranks=3",
                        "--micro-batches=6",
                        "--compute-only",
                        "--costs=forward=10,backward-input=25,backward-weight=4,transfer=7");

        var costs = GenerateOptions.defaults().withCosts(new OpCosts(10, 25, 4, 7));
        assertThat(order(costly))
                .isEqualTo(Generators.generate("zb-1p", PipelineShape.of(3, 6), costs));
        assertThat(costly.out()).isNotEqualTo(plain.out());
        assertThat(generate("zb-2p", "--costs=forwards=10").err()).contains("unknown cost");
    }

    /** For one sequence there is nothing to divide but its tokens. */
    @Test
    void aBatchIsCutTogetherWithItsSequences() throws Exception {
        String[] one = {
            "schedule",
            "slices",
            "--batch=1",
            "--ranks=2",
            "--tokens=128",
            "--hardware=" + LAPTOPS,
            "--json"
        };
        JsonNode single = new ObjectMapper().readTree(Cli.run(one).out());
        one[2] = "--batch=4";
        JsonNode four = new ObjectMapper().readTree(Cli.run(one).out());

        assertThat(single.at("/microBatches")).hasSize(1);
        assertThat(single.at("/microBatches/0/sliceLengths"))
                .isEqualTo(single.at("/equalSliceLengths"));
        assertThat(single.at("/stepNanos")).isEqualTo(single.at("/equalStepNanos"));
        int sequences = 0;
        for (JsonNode part : four.at("/microBatches")) {
            sequences += part.at("/sequences").asInt();
            int tokens = 0;
            for (JsonNode length : part.at("/sliceLengths")) {
                tokens += length.asInt();
            }
            assertThat(tokens).isEqualTo(128);
        }
        assertThat(sequences).isEqualTo(4);
        assertThat(four.at("/stepNanos").asLong())
                .isLessThanOrEqualTo(four.at("/equalStepNanos").asLong())
                .isGreaterThan(single.at("/stepNanos").asLong());
    }

    @Test
    void aBatchThatCannotBeCutIsSaid() {
        Cli wrong =
                Cli.run("schedule", "slices", "--batch=0", "--ranks=0", "--hardware=" + LAPTOPS);

        assertThat(wrong.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(wrong.err())
                .contains("--ranks: expected 1 to 67108864, got 0")
                .contains("--batch: expected 1 to 67108864, got 0");
        assertThat(Cli.run("schedule", "slices", "--tokens=100", "--hardware=" + LAPTOPS).err())
                .contains("--slice-grid: expected a divisor of 100 tokens, got 8");
    }

    @Test
    void aBatchThatNoPipelineCouldHoldIsRefused() {
        Cli large =
                Cli.run(
                        "schedule",
                        "slices",
                        "--batch=2000000000",
                        "--ranks=2000000000",
                        "--tokens=2000000000",
                        "--slice-grid=2000000000",
                        "--hardware=" + LAPTOPS);
        Cli product =
                Cli.run("schedule", "slices", "--batch=60000", "--ranks=60000", "--hardware=no");
        Cli cuts =
                Cli.run(
                        "schedule",
                        "slices",
                        "--batch=67108864",
                        "--ranks=1",
                        "--tokens=67108864",
                        "--slice-grid=1",
                        "--hardware=" + LAPTOPS);

        assertThat(List.of(large.exitCode(), product.exitCode(), cuts.exitCode()))
                .containsOnly(ExitCode.BAD_INPUT);
        assertThat(large.err())
                .contains("--batch: expected 1 to", "--ranks: expected 1 to")
                .contains("--tokens: expected 1 to", "--slice-grid: expected 1 to");
        assertThat(product.err()).contains("ranks times sequences, got 60000 x 60000");
        assertThat(cuts.err()).contains("slices to look at");
    }

    private static Cli planned(String... options) {
        return generate(
                "terapipe",
                Stream.concat(Stream.of("--ranks=2", "--slice-lengths=planned"), Stream.of(options))
                        .toArray(String[]::new));
    }

    private static Cli generate(String kind, String... options) {
        return Cli.run(
                Stream.concat(Stream.of("schedule", "generate", kind), Stream.of(options))
                        .toArray(String[]::new));
    }

    private static Schedule order(Cli generate) {
        assertThat(generate.exitCode()).as(generate.err()).isEqualTo(ExitCode.OK);
        return ScheduleText.parse(generate.out());
    }

    private static int sum(List<Integer> lengths) {
        return lengths.stream().mapToInt(Integer::intValue).sum();
    }

    /** A run that measured 50 us + 3 us a token + 2 ns a pair, and one stage twice as fast. */
    private Path run(int slices, int stages) throws IOException {
        Path directory = Files.createDirectories(folder.resolve(slices + "-of-" + stages));
        Files.writeString(folder.resolve("corpus.txt"), "to be or not to be");
        Files.writeString(
                directory.resolve("resolved.conf"),
                """
                data.source = "%s", model.context = %d, pipeline.stages = %d
                batch { sequences = 4, micro-batches = 2 }
                schedule { kind = terapipe, slices = %d }
                """
                        .formatted(folder.resolve("corpus.txt"), CONTEXT, stages, slices));
        List<ProfileLine> lines = new ArrayList<>();
        for (int stage = 0; stage < stages; stage++) {
            int context = 0;
            for (int slice = 0; slice < slices; slice++) {
                int length = CONTEXT / slices + (slice < CONTEXT % slices ? 1 : 0);
                long nanos = 50_000 + 3_000L * length + 2L * length * context;
                long measured = stage == 0 ? nanos : nanos / 2;
                long forward = measured / 3;
                lines.add(line(ComputeKind.FORWARD, stage, slice, forward));
                lines.add(line(ComputeKind.BACKWARD, stage, slice, measured - forward));
                context += length;
            }
        }
        Files.writeString(
                directory.resolve("profile.txt"), ProfileText.print(new ProfileCosts(lines)));
        return directory;
    }

    private static ProfileLine line(ComputeKind kind, int stage, int slice, long nanos) {
        return new ProfileLine.Computation(kind, stage, slice, nanos);
    }
}
