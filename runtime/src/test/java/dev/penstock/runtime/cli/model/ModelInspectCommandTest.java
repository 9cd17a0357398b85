package dev.penstock.runtime.cli.model;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.SavedRun;
import dev.penstock.runtime.cli.command.ExitCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ModelInspectCommandTest {
    private static final Path TORCH = Path.of("src/test/resources/torch");
    private static final ObjectMapper JSON = new ObjectMapper();

    @TempDir Path folder;

    @BeforeEach
    void write() {
        SavedRun.write(folder.resolve("run"), 100);
        export("gpt/model.safetensors");
        export("parts/model.safetensors", "--part-size", "4KB");
        export("gpt.gguf", "--type", "f16");
    }

    /** The same numbers, whichever file they come from. */
    @ParameterizedTest
    @CsvSource({
        "run, checkpoint of step 100, h.0.ln_1.weight, F32",
        "gpt, safetensors, h.0.ln_1.weight, F32",
        "gpt/model.safetensors, safetensors, h.0.ln_1.weight, F32",
        "parts, safetensors, h.0.ln_1.weight, F32",
        "parts/model.safetensors.index.json, safetensors, wte.weight, F32",
        "gpt.gguf, GGUF version 3, token_embd.weight, F16",
    })
    void everyFormIsTheSameModel(String path, String form, String tensor, String type) {
        Cli cli = Cli.run("model", "inspect", folder.resolve(path).toString());

        assertThat(cli.exitCode()).as(cli.err()).isEqualTo(ExitCode.OK);
        assertThat(cli.out())
                .contains("form        " + form, "family      gpt2", "parameters  3,064 in 16")
                .containsPattern(tensor + " +" + type + " +\\[");
    }

    @Test
    void layersShareTheirLines() throws IOException {
        Path model = Path.of("src/test/resources/golden/tied.init.safetensors");

        Cli cli = Cli.run("model", "inspect", model.toString());

        assertThat(cli.out())
                .contains("family      not said", "h.{0-1}.ln_1.weight")
                .doesNotContain("h.0.ln_1.weight");
    }

    @Test
    void programsGetEveryTensor() throws IOException {
        Cli cli = Cli.run("model", "inspect", folder.resolve("gpt.gguf").toString(), "--json");

        JsonNode answer = JSON.readTree(cli.out());
        assertThat(answer.get("family").asText()).isEqualTo("gpt2");
        assertThat(answer.get("tensors")).hasSize(16);
        assertThat(answer.at("/tensors/0/shape").toString()).isEqualTo("[256,8]");
        assertThat(answer.at("/config/gpt2.attention.layer_norm_epsilon").asDouble())
                .isEqualTo(1e-5);
    }

    @Test
    void whatTorchWroteIsShownWithWhatKeepsItFromBeingAModel() {
        Cli cli = Cli.run("model", "inspect", TORCH.resolve("tensors.bin").toString());

        assertThat(cli.out())
                .contains("form        torch", "wte.weight")
                .containsPattern("half +F16 +\\[3, 5]");
        assertThat(cli.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(cli.err()).contains("config.json");
    }

    @Test
    void aModelThatDoesNotFitItsConfigSaysEveryDifference() throws IOException {
        Path config = folder.resolve("gpt/config.json");
        Files.writeString(
                config,
                Files.readString(config).replace("\"n_positions\" : 16", "\"n_positions\" : 17"));

        Cli cli = Cli.run("model", "inspect", folder.resolve("gpt").toString());

        assertThat(cli.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
        assertThat(cli.out()).contains("n_positions = 17");
        assertThat(cli.err()).contains("wpe.weight: expected [17, 8], got [16, 8]");
    }

    @Test
    void aDamagedFileOrNoneIsOneError() throws IOException {
        Path damaged = folder.resolve("damaged.gguf");
        byte[] gguf = Files.readAllBytes(folder.resolve("gpt.gguf"));
        Files.write(damaged, Arrays.copyOf(gguf, gguf.length / 2));

        Cli cut = Cli.run("model", "inspect", damaged.toString());
        Cli harm = Cli.run("model", "inspect", TORCH.resolve("harm.bin").toString());
        Cli nothing = Cli.run("model", "inspect", folder.resolve("nowhere").toString());

        for (Cli each : new Cli[] {cut, harm, nothing}) {
            assertThat(each.exitCode()).isEqualTo(ExitCode.BAD_INPUT);
            assertThat(each.out()).isEmpty();
            assertThat(each.err().lines()).hasSize(1);
        }
        assertThat(cut.err()).contains("damaged.gguf: not a GGUF file");
        assertThat(harm.err()).contains("posix.system", "nothing of the file was run");
    }

    private void export(String to, String... more) {
        String[] arguments = new String[5 + more.length];
        arguments[0] = "checkpoint";
        arguments[1] = "export";
        arguments[2] = folder.resolve("run").toString();
        arguments[3] = "--output";
        arguments[4] = folder.resolve(to).toString();
        System.arraycopy(more, 0, arguments, 5, more.length);
        assertThat(Cli.run(arguments).exitCode()).isEqualTo(ExitCode.OK);
    }
}
