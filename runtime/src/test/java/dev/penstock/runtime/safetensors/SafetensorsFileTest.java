package dev.penstock.runtime.safetensors;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SafetensorsFileTest {
    private static final Path GOLDEN = Path.of("src/test/resources/golden");

    @TempDir Path directory;

    @Test
    void readsTheWeightsThatTorchWrote() {
        try (SafetensorsFile file =
                SafetensorsFile.open(GOLDEN.resolve("untied.init.safetensors"))) {
            assertThat(file.tensors()).hasSize(29);
            assertThat(file.tensor("h.1.attn.c_attn.weight").shape()).containsExactly(32, 96);
            assertThat(file.tensor("lm_head.weight").shape()).containsExactly(64, 32);
            assertThat(file.tensor("ln_f.bias").toFloats()).hasSize(32);
        }
    }

    @Test
    void readsTokensAndDoubles() {
        try (SafetensorsFile tokens = SafetensorsFile.open(GOLDEN.resolve("tokens.safetensors"));
                SafetensorsFile gradients =
                        SafetensorsFile.open(GOLDEN.resolve("tied.grad1.safetensors"))) {
            StoredTensor stored = tokens.tensor("tokens");
            assertThat(stored.type()).isEqualTo(StoredType.I64);
            assertThat(stored.shape()).containsExactly(20, 4, 17);
            for (long i = 0; i < stored.elements(); i++) {
                assertThat(stored.integer(i)).isBetween(0L, 63L);
            }
            StoredTensor gradient = gradients.tensor("wte.weight");
            assertThat(gradient.type()).isEqualTo(StoredType.F64);
            assertThat(gradient.real(5)).isNotZero();
        }
    }

    @Test
    void writesWhatItReads() throws Exception {
        Path copy = directory.resolve("copy.safetensors");
        Map<String, String> metadata = Map.of("format", "pt");
        try (SafetensorsFile file = SafetensorsFile.open(GOLDEN.resolve("tied.init.safetensors"))) {
            List<StoredTensor> tensors = List.copyOf(file.tensors());

            SafetensorsWriter.Written written = SafetensorsWriter.write(copy, metadata, tensors);

            assertThat(written.bytes())
                    .isEqualTo(Files.size(copy))
                    .isEqualTo(SafetensorsWriter.bytes(metadata, tensors));
            assertThat(written.sha256()).isEqualTo(Sha256.ofFile(copy));
            try (SafetensorsFile back = SafetensorsFile.open(copy)) {
                assertThat(back.metadata()).isEqualTo(metadata);
                for (StoredTensor tensor : tensors) {
                    StoredTensor same = back.tensor(tensor.name());
                    assertThat(same.shape()).isEqualTo(tensor.shape());
                    assertThat(same.data().mismatch(tensor.data())).isEqualTo(-1);
                }
            }
        }
    }

    @Test
    void writesTheBytesThatTheFormatAsksFor() throws Exception {
        Path path = directory.resolve("tiny.safetensors");
        StoredTensor tensor = StoredTensor.ofFloats("a", List.of(2), new float[] {1f, -2f});

        SafetensorsWriter.write(path, Map.of(), List.of(tensor));

        byte[] bytes = Files.readAllBytes(path);
        String header = "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}";
        assertThat(header).hasSize(54);
        assertThat(HexFormat.of().formatHex(bytes, 0, 8)).isEqualTo("3800000000000000");
        assertThat(new String(bytes, 8, 56, StandardCharsets.UTF_8)).isEqualTo(header + "  ");
        assertThat(HexFormat.of().formatHex(bytes, 64, 72)).isEqualTo("0000803f000000c0");
    }

    @Test
    void refusesToOverwriteAFile() {
        Path path = directory.resolve("a.safetensors");
        List<StoredTensor> tensors =
                List.of(StoredTensor.ofFloats("a", List.of(1), new float[] {1f}));
        SafetensorsWriter.write(path, Map.of(), tensors);

        assertThatThrownBy(() -> SafetensorsWriter.write(path, Map.of(), tensors))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining("a.safetensors");
    }

    @Test
    void convertsEveryFloatingPointTypeToFloats() {
        byte[] half = HexFormat.of().parseHex("003c00c0ff7b"); // 1, -2, 65504
        byte[] brain = HexFormat.of().parseHex("803f00c0003f"); // 1, -2, 0.5
        StoredTensor f16 = stored(StoredType.F16, half);
        StoredTensor bf16 = stored(StoredType.BF16, brain);

        assertThat(f16.toFloats()).containsExactly(1f, -2f, 65504f);
        assertThat(bf16.toFloats()).containsExactly(1f, -2f, 0.5f);
        assertThatThrownBy(() -> f16.integer(0)).hasMessageContaining("F16");
    }

    private static StoredTensor stored(StoredType type, byte[] data) {
        return new StoredTensor("x", type, List.of(3), MemorySegment.ofArray(data));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            textBlock =
                    """
                    [1, 2]                                                          | not a JSON object
                    {"a": 3}                                                        | dtype is ''
                    {"a": {"dtype":"F31","shape":[2],"data_offsets":[0,8]}}         | dtype is 'F31'
                    {"a": {"dtype":"F32","shape":[3],"data_offsets":[0,8]}}         | takes 12 bytes
                    {"a": {"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}        | holds -2
                    {"a": {"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}}       | holds 2.0
                    {"a": {"dtype":"F32","shape":2,"data_offsets":[0,8]}}           | shape is not a list
                    {"a": {"dtype":"F32","shape":[2],"data_offsets":[8,0]}}         | expected begin and end
                    {"a": {"dtype":"F32","shape":[2],"data_offsets":[0]}}           | expected begin and end
                    {"a": {"dtype":"F32","shape":[2],"data_offsets":[8,16]}}        | begins at data byte 8
                    {"a": {"dtype":"F32","shape":[4],"data_offsets":[0,16]}}        | cut short
                    {"a": {"dtype":"F32","shape":[1],"data_offsets":[0,4]}}         | too long
                    {"a": {"dtype":"F64","shape":[2147483647,2147483647,4],"data_offsets":[0,8]}} | larger than a file
                    {"a": {"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,8]}} | expected a whole number
                    {"__metadata__": {"x": 1}}                                      | not text
                    {"a": {"dtype":"F32","shape":[2],"data_offsets":[0,8]}, "a": 1} | Duplicate
                    {"a": {"dtype":"F32","shape":[2],"data_offsets":[0,8]}} x       | not JSON
                    """)
    void namesWhatIsWrongInAHeader(String header, String problem) throws Exception {
        Path path = directory.resolve("bad.safetensors");
        byte[] json = header.getBytes(StandardCharsets.UTF_8);
        byte[] bytes = new byte[8 + json.length + 8];
        bytes[0] = (byte) json.length;
        System.arraycopy(json, 0, bytes, 8, json.length);
        Files.write(path, bytes);

        assertThatThrownBy(() -> SafetensorsFile.open(path))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining("bad.safetensors")
                .hasMessageContaining(problem);
    }

    @Test
    void namesAllThatIsWrongInAHeaderAtOnce() throws Exception {
        StringBuilder header =
                new StringBuilder(
                        """
                        {"__metadata__": {"x": 1},
                        "a": {"dtype":"F31","shape":[-2],"data_offsets":[8,0]},
                        "b": {"dtype":"F32","shape":[3],"data_offsets":[0,8]}""");
        String two = problemsOf(header + "}");
        for (int i = 0; i < 30; i++) {
            header.append(", \"c%d\": 1".formatted(i));
        }
        String many = problemsOf(header + "}");
        String gaps =
                problemsOf(
                        """
                        {"a": {"dtype":"F32","shape":[1],"data_offsets":[2,6]},
                        "b": {"dtype":"F32","shape":[1],"data_offsets":[5,9]}}""");

        assertThat(two)
                .contains("5 problems", "__metadata__.x is not text", "a: dtype is 'F31'")
                .contains("a: shape holds -2", "a: data_offsets are [8, 0]", "b: F32 [3] takes 12");
        assertThat(many).contains("95 problems", "\n  and 75 more").doesNotContain("c20:");
        assertThat(gaps)
                .contains("3 problems", "a begins at data byte 2", "b begins at data byte 5");
    }

    private String problemsOf(String header) throws Exception {
        Path path = directory.resolve("bad.safetensors");
        byte[] json = header.getBytes(StandardCharsets.UTF_8);
        ByteBuffer bytes = ByteBuffer.allocate(16 + json.length).order(ByteOrder.LITTLE_ENDIAN);
        Files.write(path, bytes.putLong(json.length).put(json).array());
        Throwable thrown =
                assertThatThrownBy(() -> SafetensorsFile.open(path))
                        .isInstanceOf(StoredFileException.class)
                        .actual();
        return String.valueOf(thrown.getMessage());
    }

    @Test
    void saysThatAFileIsMissingOrEmptyOrADirectory() throws Exception {
        Path empty = Files.createFile(directory.resolve("empty.safetensors"));

        assertThatThrownBy(() -> SafetensorsFile.open(directory.resolve("none.safetensors")))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining("no such file");
        assertThatThrownBy(() -> SafetensorsFile.open(empty))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining("the file has 0");
        assertThatThrownBy(() -> SafetensorsFile.open(directory))
                .isInstanceOf(StoredFileException.class);
    }

    @Test
    void namesTheTensorThatIsMissing() {
        try (SafetensorsFile file = SafetensorsFile.open(GOLDEN.resolve("tied.init.safetensors"))) {
            assertThatThrownBy(() -> file.tensor("lm_head.weight"))
                    .isInstanceOf(StoredFileException.class)
                    .hasMessageContaining("no tensor 'lm_head.weight'");
        }
    }
}
