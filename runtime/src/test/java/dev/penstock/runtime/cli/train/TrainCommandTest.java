package dev.penstock.runtime.cli.train;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Cli;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TrainCommandTest {
    @TempDir Path folder;

    @Test
    void saysAllThatIsWrongWithTheOptionsBeforeAnythingIsMade() throws IOException {
        Path config = config();
        Path runs = folder.resolve("runs");

        Cli ran =
                Cli.run(
                        "train",
                        config.toString(),
                        "--run-dir",
                        runs.toString(),
                        "--resume",
                        "--init",
                        folder.resolve("none.safetensors").toString(),
                        "--dump-gradients",
                        "1:" + folder.resolve("no-folder").resolve("gradients.safetensors"));

        assertThat(ran.exitCode()).isEqualTo(2);
        assertThat(ran.err())
                .contains("--resume and --init", "none.safetensors", "no-folder")
                .doesNotContain("Exception");
        assertThat(runs).doesNotExist();
    }

    @Test
    void refusesToDumpGradientsOfAStepThatNeverComes() throws IOException {
        Cli ran =
                Cli.run(
                        "train",
                        config().toString(),
                        "--run-dir",
                        folder.resolve("runs").toString(),
                        "--set",
                        "run.steps=3",
                        "--dump-gradients",
                        "4:" + folder.resolve("gradients.safetensors"));

        assertThat(ran.exitCode()).isEqualTo(2);
        assertThat(ran.err()).contains("up to run.steps = 3, got 4");
        assertThat(folder.resolve("runs")).doesNotExist();
    }

    private Path config() throws IOException {
        Path text = Files.writeString(folder.resolve("text.txt"), "to train on ".repeat(1000));
        return Files.writeString(
                folder.resolve("small.conf"),
                """
                model { context = 32, width = 32, layers = 2, heads = 2 }
                data { source = "%s" }
                batch { sequences = 4, micro-batches = 4 }
                optimizer { learning-rate = 1e-3 }
                """
                        .formatted(text));
    }
}
