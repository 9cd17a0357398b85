package dev.penstock.systemtests.runs;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Commands on a finished run. */
class FinishedRunIT {
    @TempDir private static Path shared;
    private static Trained trained = new Trained(Path.of(""), 0, "", "");

    @TempDir Path folder;

    @BeforeAll
    static void train() {
        trained = Training.onText(shared).set("report.sample=true").complete();
    }

    @Test
    void itsDirectoryIsCompleteAndItsOutputSaysWhereItIs() {
        for (String file :
                List.of(
                        "resolved.conf",
                        "metrics.jsonl",
                        "trace.json",
                        "profile.txt",
                        "gantt.svg",
                        "loss.svg",
                        "report.html",
                        "log.txt")) {
            assertThat(trained.directory().resolve(file)).isNotEmptyFile();
        }
        assertThat(trained.out())
                .contains(trained.directory().resolve("report.html").toString())
                .contains("A sample of what it writes now");
    }

    @Test
    void itsResolvedConfigurationRepeatsIt() {
        Path again = folder.resolve("again");

        Cli cli =
                Cli.run(
                        "train",
                        trained.directory().resolve("resolved.conf").toString(),
                        "--run-dir",
                        again.toString());

        assertThat(cli.exitCode()).as(cli.err()).isEqualTo(ExitCode.OK);
        assertThat(Trained.lossBits(again)).isEqualTo(trained.lossBits());
    }

    @Test
    void itsProfileTimesItsOrderAndIsRefusedForAnotherShape() throws IOException {
        String config = trained.directory().resolve("resolved.conf").toString();

        JsonNode own = json("schedule", "simulate", config, "--profile", run(), "--json");
        Cli other = Cli.run("schedule", "simulate", "--kind=1f1b", "--ranks=9", "--profile", run());

        // a single forward takes longer than 10 microseconds on any machine
        assertThat(own.get("makespan").asLong()).isGreaterThan(100_000);
        assertThat(other.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(other.err()).contains("forward of stage 8");
    }

    @Test
    void evaluateComputesTheLossOfTheRun() throws IOException {
        for (String layout : List.of("pipeline.stages=2", "pipeline.stages=1")) {
            JsonNode newest = json("evaluate", run(), "--json", "--set", layout);

            assertThat(newest.get("step").asLong()).isEqualTo(12);
            assertThat("12 " + bits(newest.get("loss").asDouble()))
                    .isEqualTo(trained.validationBits().getLast());
        }
    }

    @Test
    void everyCheckpointIsVerifiedAndInspected() throws IOException {
        for (String step : List.of("step-000004", "step-000008", "step-000012")) {
            String checkpoint = trained.directory().resolve("checkpoints/" + step).toString();

            assertThat(Cli.run("checkpoint", "verify", checkpoint).exitCode()).isZero();
            JsonNode inspected = json("checkpoint", "inspect", checkpoint, "--json");
            assertThat(inspected.get("step").asLong()).isEqualTo(Long.parseLong(step.substring(5)));
            assertThat(inspected.get("seed").asLong()).isEqualTo(7);
            assertThat(inspected.get("files")).hasSize(2);
        }
    }

    @Test
    void aFlippedBitIsFoundAndItsFileIsNamed() throws IOException {
        Path checkpoint = Files.createDirectory(folder.resolve("step-000012"));
        try (Stream<Path> files =
                Files.list(trained.directory().resolve("checkpoints/step-000012"))) {
            for (Path file : files.toList()) {
                Files.copy(file, checkpoint.resolve(file.getFileName()));
            }
        }
        Path file = checkpoint.resolve("stage-1.safetensors");
        byte[] bytes = Files.readAllBytes(file);
        bytes[bytes.length - 5] ^= 1;
        Files.write(file, bytes);

        Cli verify = Cli.run("checkpoint", "verify", checkpoint.toString());

        assertThat(verify.exitCode()).isNotZero();
        assertThat(verify.out() + verify.err()).contains("stage-1.safetensors");
    }

    @Test
    void generateWritesTheSameTextForTheSameSeed() throws IOException {
        List<String> texts = new ArrayList<>();
        for (String seed : List.of("1", "1", "2")) {
            JsonNode answer =
                    json(
                            "generate",
                            run(),
                            "--prompt",
                            "the river ",
                            "--tokens",
                            "40",
                            "--seed",
                            seed,
                            "--json");
            assertThat(answer.get("tokens")).hasSize(40);
            texts.add(answer.get("tokens").toString());
        }

        assertThat(texts.get(1)).isEqualTo(texts.get(0));
        assertThat(texts.get(2)).isNotEqualTo(texts.get(0));
    }

    private static String run() {
        return trained.directory().toString();
    }

    private static JsonNode json(String... arguments) throws IOException {
        Cli cli = Cli.run(arguments);
        assertThat(cli.exitCode()).as(cli.err()).isEqualTo(ExitCode.OK);
        return new ObjectMapper().readTree(cli.out());
    }

    private static String bits(double value) {
        return HexFormat.of().toHexDigits(Double.doubleToLongBits(value));
    }
}
