package dev.penstock.runtime.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.runtime.model.GoldenAdapter;
import dev.penstock.runtime.model.family.AdapterParts;
import dev.penstock.runtime.model.family.Families;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.shape.AdapterPlace;
import dev.penstock.runtime.model.shape.Adapters;
import dev.penstock.runtime.model.shape.FineTuning;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.safetensors.SafetensorsFile;
import dev.penstock.runtime.safetensors.SafetensorsWriter;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.StoredTensor;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Adapters come in and go out as PEFT has them; merged ones are sums. */
class PeftAdapterTest {
    private final GoldenAdapter golden = new GoldenAdapter();

    @TempDir private Path folder;

    @Test
    void anAdapterOfPeftGoesInAndOutBitForBit() throws IOException {
        Path written = folder.resolve("out").resolve(PeftAdapter.WEIGHTS);
        try (CheckpointReader all = checkpoint()) {
            PeftAdapter.write(written, golden.config(), all, "../llama");
        }

        Path original = golden.folder().resolve(PeftAdapter.WEIGHTS);
        try (SafetensorsFile in = SafetensorsFile.open(original);
                SafetensorsFile out = SafetensorsFile.open(written)) {
            assertThat(out.tensors()).hasSameSizeAs(in.tensors());
            for (StoredTensor tensor : in.tensors()) {
                StoredTensor found = out.tensor(tensor.name());
                assertThat(found.shape()).isEqualTo(tensor.shape());
                assertThat(found.data().mismatch(tensor.data())).as(tensor.name()).isEqualTo(-1);
            }
        }
        assertThat(settings(written.resolveSibling(PeftAdapter.CONFIG)))
                .isEqualTo(settings(golden.folder().resolve(PeftAdapter.CONFIG)));
    }

    @Test
    void aMergedMatrixIsTheSumAndNoAdapterIsSeen() throws IOException {
        try (CheckpointReader apart = checkpoint()) {
            ModelTensors merged = MergedTensors.of(apart, golden.config());
            merged.requireParameters(golden.config().base());
            for (int layer = 0; layer < 2; layer++) {
                String name = "h." + layer + ".attn.c_attn.weight";
                float[] wanted = sums(apart, name, layer);
                float[] found = floats(merged, name);
                for (int i = 0; i < wanted.length; i++) {
                    assertThat(found[i]).as("%s[%d]", name, i).isCloseTo(wanted[i], within(1e-6f));
                }
                String other = "h." + layer + ".mlp.c_fc.weight";
                assertThat(floats(merged, other)).isEqualTo(floats(apart, other));
            }
            Path weights = folder.resolve("merged").resolve("model.safetensors");
            HuggingFaceExport.write(weights, golden.config().base(), merged);
            try (HuggingFaceWeights back = HuggingFaceWeights.open(weights)) {
                String name = "h.1.attn.c_attn.weight";
                assertThat(floats(back, name)).isEqualTo(floats(merged, name));
                assertThat(floats(back, name)).isNotEqualTo(floats(apart, name));
            }
        }
    }

    /** Element by element, by the definition. */
    private float[] sums(CheckpointReader apart, String name, int layer) {
        float[] sum = floats(apart, name);
        int wide = sum.length / golden.base().shape().width();
        for (AdapterPlace place : golden.adapters().places()) {
            float[] a = floats(apart, place.inner(layer));
            float[] b = floats(apart, place.outer(layer));
            for (int i = 0; i < sum.length / wide; i++) {
                for (int j = 0; j < place.columns(); j++) {
                    for (int k = 0; k < 4; k++) {
                        sum[i * wide + place.firstColumn() + j] +=
                                2 * a[i * 4 + k] * b[k * place.columns() + j];
                    }
                }
            }
        }
        return sum;
    }

    @Test
    void whatIsOtherwiseInAnAdapterIsToldAtOnce() throws IOException {
        Path other = Files.createDirectories(folder.resolve("other"));
        Files.copy(
                golden.folder().resolve(PeftAdapter.WEIGHTS), other.resolve(PeftAdapter.WEIGHTS));
        String text = Files.readString(golden.folder().resolve(PeftAdapter.CONFIG));
        Files.writeString(
                other.resolve(PeftAdapter.CONFIG),
                text.replace("\"use_dora\": false", "\"use_dora\": true")
                        .replace("\"r\": 4", "\"r\": 5"));

        try (PeftAdapter adapter = PeftAdapter.open(other)) {
            assertThatThrownBy(() -> adapter.requireFit(golden.config()))
                    .isInstanceOf(StoredFileException.class)
                    .hasMessageContaining("use_dora: expected none, got true")
                    .hasMessageContaining("r: the adapter has 5, the run has fine-tune.rank = 4");
        }
        assertThatThrownBy(() -> PeftAdapter.open(folder.resolve("none")))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining("adapter_config.json");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            nullValues = "",
            value = {
                " | expected a JSON object, got an empty file",
                "[1] | expected a JSON object, got [1]",
                "{\"r\": 4, | not JSON: it ends too early (column 9)",
                "{} | r: the adapter has none, the run has fine-tune.rank = 4",
                "{\"r\": \"4\", \"lora_alpha\": 8} | r: the adapter has \"4\", the run has",
                "{\"r\": 4, \"lora_alpha\": true} | lora_alpha: the adapter has true, the run"
            })
    void settingsThatAreNoneAreToldInPlainWords(String text, String message) throws IOException {
        Path other = copied("other");
        Files.writeString(other.resolve(PeftAdapter.CONFIG), text == null ? "" : text);

        assertThatThrownBy(
                        () -> {
                            try (PeftAdapter adapter = PeftAdapter.open(other)) {
                                adapter.requireFit(golden.config());
                            }
                        })
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining(message)
                .message()
                .doesNotContain("Source", "Stream");
    }

    @Test
    void settingsThatAreNestedTooDeepAreToldInPlainWords() throws IOException {
        Path other = copied("other");
        Files.writeString(other.resolve(PeftAdapter.CONFIG), "[".repeat(2_000));

        assertThatThrownBy(() -> PeftAdapter.open(other))
                .hasMessageContaining("not JSON: nested too deep")
                .message()
                .doesNotContain("Source", "Stream");
    }

    @Test
    void aNumberThatIsNoneIsFoundWithItsTensorAndFile() throws IOException {
        Path other = copied("other");
        Path file = other.resolve(PeftAdapter.WEIGHTS);
        List<StoredTensor> tensors = new ArrayList<>();
        try (SafetensorsFile in = SafetensorsFile.open(file)) {
            for (StoredTensor tensor : in.tensors()) {
                float[] values = tensor.toFloats();
                if (tensor.name().contains("layers.1.self_attn.v_proj.lora_B")) {
                    values[7] = Float.NaN;
                }
                tensors.add(StoredTensor.ofFloats(tensor.name(), tensor.shape(), values));
            }
        }
        Files.delete(file);
        SafetensorsWriter.write(file, Map.of(), tensors);

        try (PeftAdapter adapter = PeftAdapter.open(other)) {
            assertThatThrownBy(() -> adapter.requireFit(golden.config()))
                    .isInstanceOf(StoredFileException.class)
                    .hasMessageContaining(other.toString())
                    .hasMessageContaining(
                            "base_model.model.model.layers.1.self_attn.v_proj.lora_B.weight in"
                                    + " adapter_model.safetensors: expected finite numbers, got NaN"
                                    + " at index 7");
        }
    }

    private Path copied(String name) throws IOException {
        Path other = Files.createDirectories(folder.resolve(name));
        for (String file : List.of(PeftAdapter.WEIGHTS, PeftAdapter.CONFIG)) {
            Files.copy(golden.folder().resolve(file), other.resolve(file));
        }
        return other;
    }

    @Test
    void layersAreCalledAsPeftCallsThem() {
        ModelShape gpt2 = ModelShape.gpt2(64, 16, 32, 2, 4, true);
        var all =
                new Adapters(2, 4, AdapterParts.places(Families.GPT2, gpt2, List.of("all-linear")));

        assertThat(AdapterParts.of(Families.GPT2, gpt2, all))
                .extracting(part -> part.name() + " " + part.shape())
                .startsWith(
                        "base_model.model.transformer.h.0.attn.c_attn.lora_A.weight [2, 32]",
                        "base_model.model.transformer.h.0.attn.c_attn.lora_B.weight [96, 2]",
                        "base_model.model.transformer.h.0.attn.c_proj.lora_A.weight [2, 32]")
                .hasSize(16);
        assertThat(AdapterParts.targets(Families.GPT2, gpt2, all))
                .containsExactly("c_attn", "attn.c_proj", "c_fc", "mlp.c_proj");
        assertThatThrownBy(() -> AdapterParts.places(Families.GPT2, gpt2, List.of("q_proj")))
                .hasMessageContaining("c_attn, c_fc, c_proj")
                .hasMessageContaining("got q_proj");
    }

    @Test
    void manifestsTellOfAdaptersAndWhatIsFrozen() throws IOException {
        ModelConfig tuned =
                golden.config()
                        .training(new FineTuning(Optional.of(golden.adapters()), List.of("h.0.*")));
        var mapper = new ObjectMapper();

        ModelConfig back = mapper.readValue(mapper.writeValueAsString(tuned), ModelConfig.class);

        assertThat(back).isEqualTo(tuned);
        assertThat(back.trained().keySet()).allMatch(name -> name.startsWith("h.1."));
        assertThat(mapper.writeValueAsString(tuned.base())).doesNotContain("fine_tuning");
    }

    /** The weights of the Llama and of the adapter in one file, as a run's checkpoint has them. */
    private CheckpointReader checkpoint() throws IOException {
        List<StoredTensor> tensors = new ArrayList<>();
        try (PeftAdapter adapter = PeftAdapter.open(golden.folder())) {
            adapter.requireFit(golden.config());
            golden.config()
                    .parameters()
                    .forEach(
                            (name, shape) -> {
                                float[] values =
                                        new float[shape.stream().reduce(1, (a, b) -> a * b)];
                                TensorPiece whole = TensorPiece.all(shape);
                                MemorySegment into = MemorySegment.ofArray(values);
                                if (!adapter.fill(name, whole, into)) {
                                    assertThat(golden.base().initial().fill(name, whole, into))
                                            .isTrue();
                                }
                                tensors.add(StoredTensor.ofFloats(name, shape, values));
                            });
        }
        Path file = folder.resolve("all.safetensors");
        Files.deleteIfExists(file);
        SafetensorsWriter.write(file, Map.of(), tensors);
        return CheckpointReader.open(folder, List.of(file));
    }

    private static float[] floats(ModelTensors tensors, String name) {
        try (Arena arena = Arena.ofConfined()) {
            return tensors.read(name, arena).orElseThrow().toFloats();
        }
    }

    private static JsonNode settings(Path file) throws IOException {
        return new ObjectMapper().readTree(file.toFile());
    }
}
