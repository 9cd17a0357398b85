package dev.penstock.runtime.config.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.model.family.Families;
import dev.penstock.runtime.model.shape.AdapterPlace;
import dev.penstock.runtime.model.shape.Adapters;
import dev.penstock.runtime.model.shape.FineTuning;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FineTuneConfigTest {
    @TempDir Path folder;

    @BeforeEach
    void someText() throws IOException {
        Files.writeString(folder.resolve("corpus.txt"), "to be or not to be");
    }

    @Test
    void everythingIsTrainedUnlessSomethingIsSaid() throws IOException {
        assertThat(tuning("")).isEqualTo(FineTuning.FULL);
    }

    @Test
    void adaptersStandWherePeftPutsThemUnlessSomethingIsSaid() throws IOException {
        Adapters gpt2 = tuning("fine-tune.method = lora").adapters().orElseThrow();
        Adapters llama =
                tuning("fine-tune.method = lora, model.family = llama").adapters().orElseThrow();

        assertThat(gpt2.places()).containsExactly(new AdapterPlace("attn.c_attn", "", 0, 768));
        assertThat(llama.places())
                .containsExactly(
                        new AdapterPlace("attn.c_attn", "q_proj", 0, 256),
                        new AdapterPlace("attn.c_attn", "v_proj", 512, 256));
        assertThat(gpt2.scale()).isEqualTo(2);
    }

    @Test
    void whatCannotBeComputedIsToldAtOnce() {
        assertThatThrownBy(
                        () ->
                                tuning(
                                        "fine-tune { method = lora, targets = [q_proj], dropout = 1 }"))
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining("fine-tune.targets")
                .hasMessageContaining("c_attn, c_fc, c_proj")
                .hasMessageContaining("fine-tune.dropout");
    }

    @Test
    void dropoutIsOfAdapters() throws IOException {
        assertThat(tuning("fine-tune { method = lora, dropout = 0.1 }").adapters().orElseThrow())
                .extracting(Adapters::dropout)
                .isEqualTo(0.1);
        assertThatThrownBy(() -> tuning("fine-tune.dropout = 0.1"))
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining(
                        "expected lora, as fine-tune.dropout is of what adapters read")
                .hasMessageContaining("fine-tune.method");
    }

    @Test
    void aRankAboveTheSmallerSideIsRefused() throws IOException {
        assertThatThrownBy(() -> tuning("fine-tune { method = lora, rank = 257 }"))
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining("fine-tune.rank")
                .hasMessageContaining("at most 256, the smaller side of h.0.attn.c_attn");
        assertThat(tuning("fine-tune { method = lora, rank = 256 }").adapters()).isPresent();
    }

    @Test
    void patternsStandForParametersAndLeaveSomethingToTrain() {
        assertThatThrownBy(() -> tuning("fine-tune.freeze = [\"model.layers.0.*\"]"))
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining("wte.weight")
                .hasMessageContaining("model.layers.0.*");
        assertThatThrownBy(() -> tuning("fine-tune.freeze = [\"*\"]"))
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining("leave something to train");
        assertThatThrownBy(() -> tuning("fine-tune.freeze = [\"*.bias\"]"))
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining("freeze a norm as a whole");
    }

    @Test
    void integersAreMultipliedByCpusInFloat32() throws IOException {
        String integers = "fine-tune { method = lora, frozen = int8 }\n";

        assertThat(tuning(integers).adapters()).isPresent();
        assertThatThrownBy(() -> tuning(integers + "device.precision = bf16"))
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining("fine-tune.frozen")
                .hasMessageContaining("try device.precision = float32");
        assertThatThrownBy(() -> tuning(integers + "device { kind = cuda, precision = bf16 }"))
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining("only CPUs multiply integers: try bf16")
                .hasMessageNotContaining("try device.precision");
    }

    private FineTuning tuning(String text) throws IOException {
        Path file =
                Files.writeString(folder.resolve("run.conf"), "data.source = corpus.txt\n" + text);
        RunConfig config = ConfigLoader.load(file, List.of());
        assertThat(
                        ConfigLoader.load(
                                Files.writeString(folder.resolve("again.conf"), config.resolved()),
                                List.of()))
                .isEqualTo(config);
        return config.fineTune()
                .tuning(
                        Families.find(config.model().family()).orElseThrow(),
                        config.model().shape(256));
    }
}
