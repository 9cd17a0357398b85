package dev.penstock.runtime.cli.train;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;

class ResumeCommandTest {
    @Test
    void keepsTheConfigurationAndItsOverridesAndNamesTheDirectory() {
        assertThat(
                        ResumeCommand.of(
                                List.of("train", "my.conf", "--set", "run.steps=50"),
                                Path.of("runs/my-1")))
                .isEqualTo(
                        "penstock train my.conf --set run.steps=50 --run-dir runs/my-1 --resume");
    }

    @Test
    void leavesOutWhatAFirstStartAloneNeeds() {
        assertThat(
                        ResumeCommand.of(
                                List.of(
                                        "train",
                                        "--init",
                                        "gpt",
                                        "my.conf",
                                        "--run-dir=elsewhere",
                                        "--resume",
                                        "--dump-gradients=1:g.safetensors"),
                                Path.of("runs/my-1")))
                .isEqualTo("penstock train my.conf --run-dir runs/my-1 --resume");
    }

    @Test
    void aShellReadsTheWordsAsTheyWere() throws Exception {
        List<String> words =
                List.of(
                        "train",
                        "mein Lauf.conf",
                        "--set",
                        "data.source=\"*.txt\"",
                        "--set=a='b c'");
        String command = ResumeCommand.of(words, Path.of("runs/a b $HOME"));

        Process shell =
                new ProcessBuilder("sh", "-c", "penstock() { printf '%s\\n' \"$@\"; }\n" + command)
                        .start();

        assertThat(
                        new String(shell.getInputStream().readAllBytes(), StandardCharsets.UTF_8)
                                .lines())
                .containsExactly(
                        "train",
                        "mein Lauf.conf",
                        "--set",
                        "data.source=\"*.txt\"",
                        "--set=a='b c'",
                        "--run-dir",
                        "runs/a b $HOME",
                        "--resume");
    }
}
