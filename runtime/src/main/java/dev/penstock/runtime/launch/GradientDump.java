package dev.penstock.runtime.launch;

import dev.penstock.actors.spi.ForwardingStage;
import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.runtime.checkpoint.SafetensorsFile;
import dev.penstock.runtime.checkpoint.SafetensorsWriter;
import dev.penstock.runtime.checkpoint.StoredTensor;
import dev.penstock.runtime.checkpoint.StoredType;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Writes a stage's gradients of one step, before clipping, to a file of its own; {@link #merge}
 * makes one file of all stages'.
 */
final class GradientDump extends ForwardingStage {
    private final RunOptions.DumpRequest request;

    GradientDump(StageProgram stage, RunOptions.DumpRequest request) {
        super(stage);
        this.request = request;
    }

    @Override
    public void update(long step, double clipFactor) {
        if (step == request.step()) {
            write(part(request.file(), stage()), stored(gradients()));
        }
        super.update(step, clipFactor);
    }

    /** Joins the stages' files into the one that was asked for and removes them. */
    static void merge(RunOptions.DumpRequest request, int stages) {
        for (int s = 0; s < stages; s++) {
            if (!Files.exists(part(request.file(), s))) {
                return; // the run ended before that step
            }
        }
        List<SafetensorsFile> open = new ArrayList<>();
        try {
            List<StoredTensor> all = new ArrayList<>();
            for (int s = 0; s < stages; s++) {
                SafetensorsFile file = SafetensorsFile.open(part(request.file(), s));
                open.add(file);
                all.addAll(file.tensors());
            }
            write(request.file(), all);
        } finally {
            open.forEach(SafetensorsFile::close);
        }
        for (int s = 0; s < stages; s++) {
            try {
                Files.delete(part(request.file(), s));
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }

    private static Path part(Path file, int stage) {
        return file.resolveSibling(file.getFileName() + ".stage-" + stage);
    }

    private static void write(Path file, List<StoredTensor> tensors) {
        SafetensorsWriter.write(file, Map.of(), tensors);
    }

    private static List<StoredTensor> stored(List<NamedTensor> tensors) {
        return tensors.stream()
                .map(
                        named ->
                                new StoredTensor(
                                        named.name(),
                                        StoredType.F32,
                                        named.shape(),
                                        named.tensor().segment()))
                .toList();
    }
}
