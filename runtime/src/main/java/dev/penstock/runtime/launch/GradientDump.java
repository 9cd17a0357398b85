package dev.penstock.runtime.launch;

import dev.penstock.actors.spi.ForwardingStage;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.runtime.checkpoint.CheckpointReader;
import dev.penstock.runtime.checkpoint.StageFile;
import dev.penstock.runtime.safetensors.SafetensorsWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Writes what a rank holds of a stage's gradients of one step, before clipping, to a file of its
 * own; {@link #merge} makes one file of all.
 */
final class GradientDump extends ForwardingStage {
    private final RankPlace place;
    private final RunOptions.DumpRequest request;

    GradientDump(StageProgram stage, RankPlace place, RunOptions.DumpRequest request) {
        super(stage);
        this.place = place;
        this.request = request;
    }

    @Override
    public void update(long step, double clipFactor) {
        if (step == request.step()) {
            StageFile content = StageFile.of(Map.of(), gradients());
            SafetensorsWriter.write(
                    part(request.file(), stage(), place), content.metadata(), content.tensors());
        }
        super.update(step, clipFactor);
    }

    /**
     * Joins the ranks' files into the one that was asked for and removes them.
     *
     * @param grid of the ranks that may have written some
     */
    static void merge(RunOptions.DumpRequest request, int stages, RankGrid grid) {
        Set<Path> parts = new LinkedHashSet<>();
        for (int stage = 0; stage < stages; stage++) {
            int before = parts.size();
            for (int rank = 0; rank < grid.ranks(); rank++) {
                Path part = part(request.file(), stage, grid.placeOf(rank));
                if (Files.exists(part)) {
                    parts.add(part);
                }
            }
            if (parts.size() == before) {
                return; // the run ended before that step
            }
        }
        try (CheckpointReader reader = CheckpointReader.open(request.file(), List.copyOf(parts));
                Arena arena = Arena.ofShared()) {
            SafetensorsWriter.write(
                    request.file(),
                    Map.of(),
                    reader.tensors().stream()
                            .map(tensor -> reader.read(tensor.name(), arena).orElseThrow())
                            .toList());
        }
        for (Path part : parts) {
            try {
                Files.delete(part);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }

    private static Path part(Path file, int stage, RankPlace place) {
        return file.resolveSibling(file.getFileName() + "." + StageFile.name(stage, place));
    }
}
