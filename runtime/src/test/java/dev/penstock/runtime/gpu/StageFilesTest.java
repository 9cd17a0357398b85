package dev.penstock.runtime.gpu;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.DeviceSettings.Kind;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.runtime.checkpoint.StageFile;
import dev.penstock.runtime.safetensors.SafetensorsWriter;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Checkpoints of what is in a GPU's memory. */
class StageFilesTest {
    /** More than is copied at a time. */
    private static final int LONG = 700_001;

    @TempDir private Path folder;

    @BeforeEach
    void gpus() {
        EmulatedGpus.require();
    }

    @Test
    void theFileOfAGpuIsThatOfACpuWithTheSameNumbers() throws IOException {
        assertThat(written(Kind.CUDA)).isEqualTo(written(Kind.CPU));
    }

    private byte[] written(Kind kind) throws IOException {
        Path file = folder.resolve(kind + ".safetensors");
        try (Device device = Devices.open(DeviceSettings.DEFAULTS.withKind(kind))) {
            SafetensorsWriter.Written written =
                    SafetensorsWriter.write(
                            file,
                            Map.of("format", "pt"),
                            StageFile.of(Map.of(), state(device)).tensors());
            assertThat(written.bytes()).isEqualTo(Files.size(file));
        }
        return Files.readAllBytes(file);
    }

    /** Whole ones, a piece with rows that pad it, and one that begins within its buffer. */
    private static List<NamedTensor> state(Device device) {
        List<NamedTensor> state = new ArrayList<>();
        var random = new Random(3);
        for (int elements : new int[] {5, LONG, 31}) {
            Tensor whole = filled(device, elements, random);
            state.add(new NamedTensor("whole " + elements, List.of(elements), whole));
        }
        TensorPiece piece = TensorPiece.all(List.of(40, 10)).stretch(100, 250);
        state.add(new NamedTensor("padded", piece, filled(device, 200, random)));
        Tensor last = filled(device, 30, random).columns(10, 20);
        state.add(new NamedTensor("last", List.of(20), last));
        return state;
    }

    private static Tensor filled(Device device, int elements, Random random) {
        Tensor tensor = device.memory().tensor("t", DType.F32, 1, elements);
        float[] values = new float[elements];
        for (int i = 0; i < elements; i++) {
            values[i] = (float) random.nextGaussian();
        }
        tensor.write(MemorySegment.ofArray(values));
        return tensor;
    }
}
