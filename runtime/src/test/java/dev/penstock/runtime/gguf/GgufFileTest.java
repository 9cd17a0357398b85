package dev.penstock.runtime.gguf;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.StoredTensor;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class GgufFileTest {
    @TempDir Path folder;

    @SuppressWarnings("NullAway.Init") // set before each test
    private Path file;

    @BeforeEach
    void write() {
        file = folder.resolve("model.gguf");
        Map<String, GgufValue> metadata = new LinkedHashMap<>();
        metadata.put("general.architecture", new GgufValue.Text("gpt2"));
        metadata.put("gpt2.block_count", new GgufValue.Count(2));
        metadata.put("gpt2.epsilon", new GgufValue.Real(0.5));
        metadata.put("tokenizer.ggml.tokens", new GgufValue.Texts(List.of("a", "bb", "")));
        metadata.put("tokenizer.ggml.token_type", new GgufValue.Numbers(List.of(1, -1)));
        metadata.put("flag", new GgufValue.Flag(true));
        StoredTensor vector = StoredTensor.ofFloats("v", List.of(3), new float[] {1, 2, 3});
        StoredTensor matrix = StoredTensor.ofFloats("m", List.of(2, 32), new float[64]);
        GgufWriter.write(
                file,
                metadata,
                List.of(
                        new GgufTensor("v", vector.shape(), GgufType.F32, vector),
                        new GgufTensor("m", matrix.shape(), GgufType.Q8_0, matrix)));
    }

    @Test
    void whatWasWrittenIsRead() {
        GgufFile gguf = GgufFile.read(file);

        assertThat(GgufFile.isOne(file)).isTrue();
        assertThat(gguf.version()).isEqualTo(3);
        assertThat(gguf.metadata())
                .containsEntry("general.architecture", new GgufValue.Text("gpt2"))
                .containsEntry("gpt2.block_count", new GgufValue.Count(2))
                .containsEntry("gpt2.epsilon", new GgufValue.Real(0.5))
                .containsEntry("tokenizer.ggml.tokens", new GgufValue.Skipped("STRING", 3))
                .containsEntry("tokenizer.ggml.token_type", new GgufValue.Skipped("I32", 2))
                .containsEntry("flag", new GgufValue.Flag(true));
        assertThat(gguf.tensors())
                .containsExactly(
                        new GgufFile.Entry("v", GgufType.F32, List.of(3L), 12),
                        new GgufFile.Entry("m", GgufType.Q8_0, List.of(2L, 32L), 68));
    }

    /** But for the padding behind the last tensor. */
    @Test
    void everyTruncationIsRefused() throws IOException {
        byte[] whole = Files.readAllBytes(file);
        for (int length = 0; length < whole.length - 28; length++) {
            assertThat(refused(Arrays.copyOf(whole, length))).as("cut to %d", length).isTrue();
        }
    }

    @Test
    void damageIsRefusedOrHarmless() throws IOException {
        byte[] whole = Files.readAllBytes(file);
        Random random = new Random(3);
        int refusals = 0;
        for (int trial = 0; trial < 20_000; trial++) {
            byte[] damaged = whole.clone();
            for (int harm = 0; harm < 1 + random.nextInt(4); harm++) {
                int at = random.nextInt(whole.length - 100);
                damaged[at] = (byte) (random.nextBoolean() ? random.nextInt(256) : 0xff);
            }
            refusals += refused(damaged) ? 1 : 0;
        }

        assertThat(refusals).isGreaterThan(10_000);
    }

    @Test
    void anotherFileIsNone() throws IOException {
        Path text = Files.writeString(folder.resolve("text"), "no model, but longer than that");

        assertThat(GgufFile.isOne(text)).isFalse();
        assertThatThrownBy(() -> GgufFile.read(text))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining("text: not a GGUF file: it does not begin with GGUF");
    }

    private boolean refused(byte[] bytes) {
        try {
            GgufFile.read(file, MemorySegment.ofArray(bytes));
            return false;
        } catch (StoredFileException e) {
            assertThat(e).hasMessageContaining("model.gguf: not a GGUF file");
            return true;
        }
    }
}
