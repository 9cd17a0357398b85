package dev.penstock.runtime.cli.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.SavedRun;
import dev.penstock.runtime.cli.command.ExitCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CheckpointCommandTest {
    private static final JsonMapper JSON = JsonMapper.builder().build();

    @TempDir Path run;

    @Test
    void inspectShowsStepModelAndFiles() {
        SavedRun.write(run, 100);

        Cli inspect = Cli.run("checkpoint", "inspect", run.toString());

        assertThat(inspect.exitCode()).isEqualTo(ExitCode.OK);
        assertThat(inspect.out())
                .contains("step        100", "1 layers, width 8, 2 heads, context 16")
                .contains("stage-0.safetensors")
                .doesNotContain("wte.weight");
    }

    @Test
    void inspectListsTensorsWhenAsked() {
        Path checkpoint = SavedRun.write(run, 100);

        Cli inspect = Cli.run("checkpoint", "inspect", checkpoint.toString(), "--tensors");

        assertThat(inspect.out()).containsPattern("F32 +\\[256, 8] +wte.weight");
    }

    @Test
    void inspectAnswersProgramsInJson() throws IOException {
        SavedRun.write(run, 100);

        JsonNode answer =
                JSON.readTree(Cli.run("checkpoint", "inspect", run.toString(), "--json").out());

        assertThat(answer.get("step").asLong()).isEqualTo(100);
        assertThat(answer.at("/model/width").asInt()).isEqualTo(8);
        // 12 d^2 + 13 d in the block, both embeddings, the last norm
        assertThat(answer.get("parameters").asLong())
                .isEqualTo(12 * 64 + 13 * 8 + (256 + 16) * 8 + 2 * 8);
    }

    @Test
    void verifyReadsEveryCheckpointOfARun() {
        SavedRun.write(run, 100);
        SavedRun.write(run, 200);

        Cli verify = Cli.run("checkpoint", "verify", run.toString());

        assertThat(verify.exitCode()).isEqualTo(ExitCode.OK);
        assertThat(verify.out()).contains("step-000100: whole", "step-000200: whole");
    }

    @Test
    void verifyNamesADamagedFile() throws IOException {
        Path checkpoint = SavedRun.write(run, 100);
        Path shard = checkpoint.resolve("stage-0.safetensors");
        byte[] bytes = Files.readAllBytes(shard);
        bytes[bytes.length - 1] ^= 1;
        Files.write(shard, bytes);

        Cli verify = Cli.run("checkpoint", "verify", checkpoint.toString());
        JsonNode verdicts =
                JSON.readTree(Cli.run("checkpoint", "verify", run.toString(), "--json").out());

        assertThat(verify.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(verify.err()).contains("stage-0.safetensors", "SHA-256");
        assertThat(verdicts.at("/0/ok").asBoolean()).isFalse();
        assertThat(verdicts.at("/0/problems/0").asText()).contains("stage-0.safetensors");
    }

    @Test
    void aFolderWithoutCheckpointsIsBadInput() {
        Cli inspect = Cli.run("checkpoint", "inspect", run.toString());
        Cli verify = Cli.run("checkpoint", "verify", run.resolve("nowhere").toString());

        assertThat(inspect.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(inspect.err()).contains("no checkpoint here");
        assertThat(verify.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(verify.err()).contains("nowhere");
    }
}
