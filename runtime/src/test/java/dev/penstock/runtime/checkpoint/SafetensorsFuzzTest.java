package dev.penstock.runtime.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;

import dev.penstock.runtime.safetensors.SafetensorsFile;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.safetensors.StoredTensor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A damaged file is either refused by name or still a file whose tensors can all be read. */
class SafetensorsFuzzTest {
    private static final Path GOLDEN = Path.of("src/test/resources/golden/tokens.safetensors");
    private static final Path WEIGHTS = Path.of("src/test/resources/golden/tied.init.safetensors");

    @TempDir Path directory;

    @Test
    void everyTruncationIsRefused() throws Exception {
        byte[] whole = Files.readAllBytes(GOLDEN);
        Path path = directory.resolve("cut.safetensors");
        for (int length = 0; length < whole.length; length += length < 200 ? 1 : 61) {
            Files.write(path, Arrays.copyOf(whole, length));

            assertThat(refused(path)).as("cut to %d bytes", length).isTrue();
        }
    }

    @Test
    void everyBitOfTheLengthAndRandomBitsElsewhereAreSurvived() throws Exception {
        byte[] whole = Files.readAllBytes(WEIGHTS);
        int headerEnd = 8 + (int) ByteBuffer.wrap(whole).order(ByteOrder.LITTLE_ENDIAN).getLong(0);
        long seed = 20251120;
        Random random = new Random(seed);
        Path path = directory.resolve("flipped.safetensors");
        for (int trial = 0; trial < 1500; trial++) {
            int bit = trial < 64 ? trial : random.nextInt(headerEnd * 8);
            byte[] damaged = whole.clone();
            damaged[bit / 8] ^= (byte) (1 << (bit % 8));
            Files.write(path, damaged);

            boolean refused = refused(path);

            if (bit < 64) {
                assertThat(refused).as("bit %d of the header length", bit).isTrue();
            }
        }
    }

    @Test
    void randomHeadersAreSurvived() throws Exception {
        byte[] whole = Files.readAllBytes(WEIGHTS);
        Random random = new Random(7);
        Path path = directory.resolve("garbled.safetensors");
        for (int trial = 0; trial < 500; trial++) {
            byte[] damaged = whole.clone();
            int from = random.nextInt(3000);
            for (int i = from; i < from + 1 + random.nextInt(40); i++) {
                damaged[i] = (byte) random.nextInt(256);
            }
            Files.write(path, damaged);

            refused(path);
        }
    }

    /**
     * Opens and reads everything; anything but a checkpoint exception that names the file fails.
     */
    private static boolean refused(Path path) {
        try (SafetensorsFile file = SafetensorsFile.open(path)) {
            for (StoredTensor tensor : file.tensors()) {
                if (tensor.isFloatingPoint() && tensor.elements() > 0) {
                    tensor.real(tensor.elements() - 1);
                }
            }
            return false;
        } catch (StoredFileException e) {
            assertThat(e).hasMessageContaining(path.getFileName().toString());
            return true;
        } catch (RuntimeException e) {
            return fail("another exception than expected", e);
        }
    }
}
