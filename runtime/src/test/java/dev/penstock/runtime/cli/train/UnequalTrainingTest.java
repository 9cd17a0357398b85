package dev.penstock.runtime.cli.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Whole runs whose micro-batches have their own lengths. */
class UnequalTrainingTest {
    private static final String LENGTHS = "data.packing=lengths";

    @TempDir Path folder;

    @Test
    void theLossesAreThoseOfPaddedRows() throws IOException {
        Trained padded = onLines("padded").set("data.packing=padded").complete();
        Trained shorter = onLines("shorter").set(LENGTHS).complete();

        assertEqual(shorter.losses(), padded.losses());
        assertThat(shorter.validationBits()).hasSameSizeAs(padded.validationBits());
        assertThat(shorter.out()).contains("rows of one document to train on");
    }

    private static void assertEqual(List<Double> losses, List<Double> expected) {
        assertThat(losses).hasSize(12).hasSameSizeAs(expected);
        for (int i = 0; i < expected.size(); i++) {
            assertThat(losses.get(i)).as("step %d", i + 1).isCloseTo(expected.get(i), within(1e-6));
        }
    }

    @Test
    void layoutsAndResumingDoNotChangeABit() throws IOException {
        Trained whole = onLines("whole").set(LENGTHS).complete();
        Trained one = onLines("one").set(LENGTHS, "pipeline.stages=1").complete();
        Trained sliced =
                onLines("sliced")
                        .set(LENGTHS, "schedule.kind=seq1f1b", "schedule.slices=2")
                        .complete();
        Trained again = onLines("again").set(LENGTHS, "schedule.recompute=full").complete();
        Trained split = onLines("split").set(LENGTHS, "schedule.kind=zb-h1").complete();
        Training begun = onLines("begun").set(LENGTHS);
        begun.copy().set("run.steps=8").complete();
        Trained resumed = begun.resume().complete();

        assertThat(one.lossBits()).isEqualTo(whole.lossBits());
        assertThat(one.validationBits()).isEqualTo(whole.validationBits());
        assertThat(sliced.lossBits()).isEqualTo(whole.lossBits());
        assertThat(sliced.validationBits()).isEqualTo(whole.validationBits());
        assertThat(again.lossBits()).isEqualTo(whole.lossBits());
        assertThat(split.lossBits()).isEqualTo(whole.lossBits());
        assertThat(resumed.lossBits()).isEqualTo(whole.lossBits());
    }

    @Test
    void arrangementsAndReplicasComputeTheSame() throws IOException {
        List<Double> losses = onLines("hill").set(LENGTHS).complete().losses();
        for (String other :
                List.of(
                        "batch.arrangement=valley",
                        "batch.arrangement=rising",
                        "batch.arrangement=falling",
                        "batch.arrangement=simulated",
                        "batch.length-step=1",
                        "parallel.data=2")) {
            Trained trained = onLines(other.replaceAll("\\W", "-")).set(LENGTHS, other).complete();

            assertEqual(trained.losses(), losses);
        }
    }

    /** Shards add in another order; rows of a unit are divided among them. */
    @Test
    void shardsOfTensorsAndStatesFollowTheSameRun() throws IOException {
        List<Double> losses = onLines("one").set(LENGTHS).complete().losses();
        for (List<String> layout :
                List.of(
                        List.of("parallel.tensor=2", "parallel.sequence=true"),
                        List.of("parallel.data=2", "parallel.zero.stage=3"))) {
            Trained trained =
                    onLines("shards" + layout.size() + layout.hashCode())
                            .set(LENGTHS)
                            .set(layout.toArray(String[]::new))
                            .complete();

            for (int i = 0; i < losses.size(); i++) {
                assertThat(trained.losses().get(i)).isCloseTo(losses.get(i), within(1e-4));
            }
        }
    }

    @Test
    void theSimulatorTellsTheTimeBesideThatOfPaddedRows() throws IOException {
        Training training = onLines("simulated").set(LENGTHS);
        Trained trained = training.set("run.steps=1").complete();
        String[] simulate = {"schedule", "simulate", training.configuration().toString()};
        List<String> all = new ArrayList<>(List.of(simulate));
        training.settings().forEach(setting -> all.addAll(List.of("--set", setting)));

        Cli simulated = Cli.run(all.toArray(String[]::new));

        assertThat(trained.out())
                .containsPattern(
                        "lengths: a simulated step takes [1-9]\\d % of the time of padded");
        assertThat(simulated.out())
                .containsPattern(
                        "of unequal micro-batches: makespan \\d+\\.\\d on average of 8 steps")
                .containsPattern("hill \\d+ %, rising \\d+ %, falling \\d+ %, valley \\d+ %");
        assertThat(simulated.exitCode()).isZero();
    }

    /** Its times are means over the lengths, and would be taken for those of whole rows. */
    @Test
    void theSimulatorRefusesTheProfileOfSuchARunAndTakesThatOfPaddedRows() throws IOException {
        Training lengths = onLines("measured").set(LENGTHS, "run.steps=3");
        Training padded = onLines("whole").set("data.packing=padded", "run.steps=3");
        lengths.complete();
        padded.complete();
        List<String> all =
                new ArrayList<>(
                        List.of("schedule", "simulate", lengths.configuration().toString()));
        lengths.settings().forEach(setting -> all.addAll(List.of("--set", setting)));
        all.add("--profile");

        Cli refused = withLast(all, lengths.directory());
        Cli taken = withLast(all, padded.directory());

        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err())
                .contains("profile.txt: expected the times of sequences of one length")
                .contains("take a run with data.packing = padded")
                .doesNotContain("\tat ");
        assertThat(taken.exitCode()).as(taken.err()).isZero();
        assertThat(taken.out()).contains("of unequal micro-batches");
    }

    private static Cli withLast(List<String> arguments, Path last) {
        List<String> all = new ArrayList<>(arguments);
        all.add(last.toString());
        return Cli.run(all.toArray(String[]::new));
    }

    @Test
    void whatDoesNotGoTogetherIsRefused() throws IOException {
        Trained refused =
                onLines("refused").set(LENGTHS, "parallel.context=2", "batch.last=smaller").run();

        assertThat(refused.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(refused.err())
                .contains("1 where data.packing = lengths: context parts do not know their borders")
                .contains("batch.last: expected full where data.packing = lengths")
                .doesNotContain("\tat ");
    }

    /** Documents whose lengths are log-normal, as those of most texts. */
    private Training onLines(String name) throws IOException {
        Path own = folder.resolve(name);
        Training training =
                Training.onText(own)
                        .set("data.format=jsonl", "optimizer.schedule=constant")
                        .set("batch.length-step=8", "batch.sequences=8")
                        .set("device.reduction-block=4");
        var random = new Random(7);
        String text = Training.text(60_000).replace("\n", " ");
        StringBuilder lines = new StringBuilder();
        for (int from = 0; from < text.length() - 200; ) {
            int length = 2 + (int) Math.min(150, Math.exp(2.2 + random.nextGaussian()));
            lines.append("{\"text\": \"%s\"}\n".formatted(text.substring(from, from + length)));
            from += length;
        }
        Files.writeString(own.resolve("text.txt"), lines);
        return training;
    }
}
