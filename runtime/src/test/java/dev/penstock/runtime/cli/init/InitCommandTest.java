package dev.penstock.runtime.cli.init;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.ForkedJava;
import dev.penstock.runtime.cli.command.ExitCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class InitCommandTest {
    @TempDir Path folder;

    @Test
    void aNewFolderIsCheckedAndTrainedAsItIs() throws IOException {
        Path mine = folder.resolve("a new/model of mine");

        Cli init = Cli.run("init", mine.toString());

        assertThat(init.exitCode()).as(init.err()).isEqualTo(ExitCode.OK);
        String configuration = mine.resolve("train.conf").toString();
        assertThat(init.out())
                .contains("a tiny model of 120.6k parameters", "a sample")
                .endsWith(
                        """
                        next:
                          penstock train '%s'
                          penstock generate runs/model-of-mine-1 --prompt "The "
                          penstock serve runs/model-of-mine-1
                        """
                                .formatted(configuration));
        assertThat(mine.resolve("README")).content().contains("penstock train train.conf");
        assertThat(mine.resolve("text/sample.txt")).isNotEmptyFile();
        assertThat(Cli.run("config", "check", configuration).exitCode()).isEqualTo(ExitCode.OK);
        ForkedJava.asLaunched();
        Cli train =
                Cli.run(
                        "train",
                        configuration,
                        "--run-dir=" + folder.resolve("run"),
                        "--set=run.steps=2",
                        "--set=device.threads=1",
                        "--set=data-plane.term-length=1 MiB",
                        "--set=report.dashboard=false");
        assertThat(train.exitCode()).as(train.err()).isEqualTo(ExitCode.OK);
        assertThat(Cli.run("init", mine.toString()).exitCode()).isEqualTo(ExitCode.BAD_INPUT);
    }

    @Test
    void answersProgramsInJson() throws IOException {
        Files.writeString(folder.resolve("a.txt"), "to be or not to be ".repeat(10_000));

        Cli init = Cli.run("init", folder.toString(), "--json", "--size", "tiny");
        JsonNode answer = JsonMapper.builder().build().readTree(init.out());

        assertThat(answer.get("size").asText()).isEqualTo("tiny");
        assertThat(answer.get("bytes").asLong()).isEqualTo(190_000);
        assertThat(answer.get("sample").asBoolean()).isFalse();
        assertThat(answer.at("/next/0").asText())
                .isEqualTo("penstock train " + folder.resolve("train.conf"));
    }

    @Test
    void anUnknownSizeIsAnsweredWithTheSizes() {
        Cli init = Cli.run("init", folder.resolve("new").toString(), "--size", "huge");

        assertThat(init.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(init.err()).contains("--size", "huge", "tiny", "large");
    }
}
