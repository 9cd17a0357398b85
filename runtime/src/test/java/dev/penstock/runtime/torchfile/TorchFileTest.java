package dev.penstock.runtime.torchfile;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.runtime.safetensors.SafetensorsFile;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.StoredTensor;
import dev.penstock.runtime.safetensors.StoredTensors;
import dev.penstock.runtime.weights.WeightsFiles;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The files were written by torch itself; {@code make.py} beside them says how. */
class TorchFileTest {
    private static final Path FILES = Path.of("src/test/resources/torch");

    @TempDir Path folder;

    @ParameterizedTest
    @ValueSource(strings = {"tensors.bin", "legacy.bin", "pytorch_model.bin.index.json"})
    void everyTensorIsTheOneThatSafetensorsHolds(String name) {
        try (StoredTensors torch = WeightsFiles.open(FILES.resolve(name));
                SafetensorsFile expected =
                        SafetensorsFile.open(FILES.resolve("tensors.safetensors"))) {
            assertThat(torch.tensors())
                    .extracting(StoredTensor::name)
                    .containsExactlyInAnyOrderElementsOf(
                            expected.tensors().stream().map(StoredTensor::name).toList());
            for (StoredTensor tensor : expected.tensors()) {
                StoredTensor same = torch.find(tensor.name()).orElseThrow();
                assertThat(same.type()).as(tensor.name()).isEqualTo(tensor.type());
                assertThat(same.shape()).as(tensor.name()).isEqualTo(tensor.shape());
                assertThat(same.data().mismatch(tensor.data())).as(tensor.name()).isEqualTo(-1);
            }
        }
    }

    @Test
    void tensorsThatShareAStorageShareItsMemory() {
        try (TorchFile file = TorchFile.open(FILES.resolve("tensors.bin"))) {
            long table = file.find("wte.weight").orElseThrow().data().address();

            assertThat(file.find("lm_head.weight").orElseThrow().data().address()).isEqualTo(table);
            assertThat(file.find("row").orElseThrow().data().address())
                    .isEqualTo(table + 2 * 6 * Float.BYTES);
        }
    }

    @Test
    void theStateOfAModuleHasMoreThanTensorsToItAndIsRead() {
        try (TorchFile file = TorchFile.open(FILES.resolve("module.bin"))) {
            assertThat(file.tensors())
                    .extracting(StoredTensor::name)
                    .containsExactly("weight", "bias");
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "harm.bin | has the Python name posix.system, which is none of",
                "harm.bin | nothing of the file was run",
                "nested.bin | expected tensors alone, got something else under 'epoch', 'model'",
                "expanded.bin | has elements that share their place",
                "tensors.safetensors | begins neither as a zip file nor as a pickle",
                "missing.bin | no such file",
            })
    void anythingElseSaysWhatItIs(String name, String problem) {
        assertThatThrownBy(() -> TorchFile.open(FILES.resolve(name)))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining(name)
                .hasMessageContaining(problem);
        assertThat(Path.of("harmed")).doesNotExist();
    }

    /** Each a table of contents by hand: what it claims would need more than there is. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "elements | 1000000000 | 0 | 4 | 1 | has 1000000000 elements of F32 by the table",
                "shape | 4 | 0 | 2000000000 | 1 | ends behind its storage",
                "offset | 4 | 3 | 2 | 1 | ends behind its storage",
                "beyond | 4 | 9 | 1 | 1 | is no view of a storage",
                "negative | 4 | -1 | 1 | 1 | is no view of a storage",
                "negative stride | 4 | 0 | 2 | -1 | is no view of a storage",
                "stride | 4 | 0 | 2 | 2000000000 | ends behind its storage",
                "zero stride | 4 | 0 | 4 | 0 | has elements that share their place",
            })
    void claimsBeyondTheStorageAreRefused(
            String name, int elements, int offset, int size, int stride, String problem)
            throws IOException {
        Path file = zip(table(elements, offset, size, stride), new byte[16]);

        assertThatThrownBy(() -> TorchFile.open(file))
                .as(name)
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining(problem);
    }

    @Test
    void aTableByHandIsReadIfItFits() throws IOException {
        Path file = zip(table(4, 1, 2, 2), new byte[16]);

        try (TorchFile torch = TorchFile.open(file)) {
            assertThat(torch.find("w").orElseThrow().toFloats()).containsExactly(0, 0);
        }
    }

    /** A tuple of the same tuple twice, forty times over: 2^40 values for whoever walks it. */
    @Test
    void valuesInsideOneAnotherAreNeverWalked() throws IOException {
        ByteArrayOutputStream table = new ByteArrayOutputStream();
        table.writeBytes(new byte[] {(byte) 0x80, 2, '}', 'X', 1, 0, 0, 0, 'w', ')'});
        for (int i = 0; i < 40; i++) {
            table.writeBytes(new byte[] {'q', (byte) i, 'h', (byte) i, (byte) 0x86});
        }
        table.writeBytes(new byte[] {'s', '.'});
        Path file = zip(table.toByteArray(), new byte[0]);

        assertThatThrownBy(() -> TorchFile.open(file))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining("something else under 'w'");
    }

    /** Megabytes of bytes each of which makes a value: gigabytes, if all were made. */
    @ParameterizedTest
    @ValueSource(strings = {"7d", "5d", "29", "4b07", "28", "5800000000"})
    void valuesThatWouldFillTheMemoryAreRefusedBeforeTheyAreMade(String opcodes)
            throws IOException {
        byte[] values = HexFormat.of().parseHex(opcodes.repeat((30 << 20) / opcodes.length() * 2));
        ByteArrayOutputStream table = new ByteArrayOutputStream();
        table.writeBytes(new byte[] {(byte) 0x80, 2, '}', 'q', 0});
        table.writeBytes(values);
        Path file = zip(table.toByteArray(), new byte[0]);

        assertThatThrownBy(() -> TorchFile.open(file))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining("more values than 256 MiB of memory hold");
    }

    @Test
    void aCompressedEntryIsRefused() throws IOException {
        Path file = folder.resolve("compressed.bin");
        try (ZipOutputStream zip = new ZipOutputStream(Files.newOutputStream(file))) {
            zip.putNextEntry(new ZipEntry("a/data.pkl"));
            zip.write(table(4, 0, 4, 1));
        }

        assertThatThrownBy(() -> TorchFile.open(file))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining("is compressed or encrypted");
    }

    @ParameterizedTest
    @ValueSource(strings = {"tensors.bin", "legacy.bin", "module.bin"})
    void everyTruncationIsRefused(String name) throws IOException {
        byte[] whole = Files.readAllBytes(FILES.resolve(name));
        for (int length = 0; length < whole.length; length++) {
            assertThat(refused(Arrays.copyOf(whole, length)))
                    .as("cut to %d bytes", length)
                    .isTrue();
        }
        Path file = Files.write(folder.resolve(name), Arrays.copyOf(whole, whole.length - 1));
        assertThatThrownBy(() -> TorchFile.open(file))
                .isInstanceOf(StoredFileException.class)
                .hasMessageContaining(name);
    }

    /** A damaged file is either refused by name, or still one whose tensors can all be read. */
    @ParameterizedTest
    @ValueSource(strings = {"tensors.bin", "legacy.bin", "module.bin"})
    void everyByteMayBeAnother(String name) throws IOException {
        byte[] whole = Files.readAllBytes(FILES.resolve(name));
        Random random = new Random(20260101);
        int refusals = 0;
        for (int at = 0; at < whole.length; at++) {
            for (int value : new int[] {0, 0xff, 0x80, whole[at] ^ (1 << random.nextInt(8))}) {
                byte[] damaged = whole.clone();
                damaged[at] = (byte) value;
                refusals += refused(damaged) ? 1 : 0;
            }
        }

        assertThat(refusals).isGreaterThan(whole.length / 4);
    }

    @ParameterizedTest
    @ValueSource(strings = {"tensors.bin", "legacy.bin", "module.bin"})
    void garbledFilesAreSurvived(String name) throws IOException {
        byte[] whole = Files.readAllBytes(FILES.resolve(name));
        Random random = new Random(8);
        for (int trial = 0; trial < 3000; trial++) {
            byte[] damaged = whole.clone();
            for (int harm = 0; harm < 1 + random.nextInt(6); harm++) {
                int from = random.nextInt(damaged.length);
                int to = random.nextInt(damaged.length);
                int count = Math.min(1 + random.nextInt(30), damaged.length - Math.max(from, to));
                if (random.nextBoolean()) {
                    System.arraycopy(whole, from, damaged, to, count);
                } else {
                    for (int i = 0; i < count; i++) {
                        damaged[to + i] = (byte) random.nextInt(256);
                    }
                }
            }

            refused(damaged);
        }
    }

    /** Reads everything; any exception but the one that says what is wrong fails the test. */
    private static boolean refused(byte[] file) {
        try (Arena arena = Arena.ofConfined()) {
            for (StoredTensor tensor :
                    TorchFile.read(MemorySegment.ofArray(file), arena).values()) {
                if (tensor.isFloatingPoint() && tensor.elements() > 0) {
                    tensor.real(tensor.elements() - 1);
                }
            }
            return false;
        } catch (MalformedException e) {
            assertThat(String.valueOf(e.getMessage()).length()).isBetween(10, 4000);
            return true;
        }
    }

    /** {"w": a tensor with one dimension}. */
    private static byte[] table(int elements, int offset, int size, int stride) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        out.writeBytes(new byte[] {(byte) 0x80, 2, '}'});
        text(out, "w");
        out.writeBytes("ctorch._utils\n_rebuild_tensor_v2\n((".getBytes(StandardCharsets.UTF_8));
        text(out, "storage");
        out.writeBytes("ctorch\nFloatStorage\n".getBytes(StandardCharsets.UTF_8));
        text(out, "0");
        text(out, "cpu");
        number(out, elements);
        out.writeBytes(new byte[] {'t', 'Q'});
        number(out, offset);
        number(out, size);
        out.write(0x85);
        number(out, stride);
        out.write(0x85);
        out.write(0x89);
        out.writeBytes("ccollections\nOrderedDict\n)RtRs.".getBytes(StandardCharsets.UTF_8));
        return out.toByteArray();
    }

    private static void text(ByteArrayOutputStream out, String text) {
        out.writeBytes(new byte[] {'X', (byte) text.length(), 0, 0, 0});
        out.writeBytes(text.getBytes(StandardCharsets.UTF_8));
    }

    private static void number(ByteArrayOutputStream out, int number) {
        out.write('J');
        for (int i = 0; i < 4; i++) {
            out.write(number >> (8 * i));
        }
    }

    private Path zip(byte[] table, byte[] storage) throws IOException {
        Path file = folder.resolve("by-hand.bin");
        try (ZipOutputStream zip = new ZipOutputStream(Files.newOutputStream(file))) {
            for (var part :
                    List.of(Map.entry("a/data.pkl", table), Map.entry("a/data/0", storage))) {
                ZipEntry entry = new ZipEntry(part.getKey());
                CRC32 crc = new CRC32();
                crc.update(part.getValue());
                entry.setMethod(ZipEntry.STORED);
                entry.setSize(part.getValue().length);
                entry.setCrc(crc.getValue());
                zip.putNextEntry(entry);
                zip.write(part.getValue());
            }
        }
        return file;
    }
}
