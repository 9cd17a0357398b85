package dev.penstock.runtime.cli;

import dev.penstock.runtime.launch.RunAssembly;
import dev.penstock.runtime.metrics.Quantities;
import dev.penstock.runtime.metrics.RunDirectory;
import java.io.PrintWriter;
import java.util.List;

/** The first lines of a run: what is trained, on what, in which order, and where its files are. */
final class RunBanner {
    private RunBanner() {}

    static void print(PrintWriter out, RunAssembly assembly, RunDirectory directory) {
        var shape = assembly.model().shape();
        var config = assembly.config();
        out.printf(
                "%s: %s parameters (%d layers, width %d, %d heads, context %d, vocabulary %d)%n",
                config.run().name(),
                Quantities.count(shape.parameters()),
                shape.layers(),
                shape.width(),
                shape.heads(),
                shape.context(),
                shape.vocabulary());
        out.printf("data: %s%n", assembly.data().description());
        out.printf(
                "pipeline: %d stages of %s layers, %s, %d micro-batches of %d sequences%n",
                assembly.model().partition().stages(),
                assembly.model().partition().layersPerStage(),
                assembly.plan().training().name(),
                config.batch().microBatches(),
                config.batch().sequencesPerMicroBatch());
        List<Integer> slices = assembly.plan().training().shape().sliceLengths();
        if (slices.size() > 1) {
            out.printf("token slices: %s%n", slices);
            SliceNote.of(slices, config.device().reductionBlock())
                    .ifPresent(note -> out.printf("note: %s%n", note));
        }
        out.printf("run directory: %s%n", directory.path());
        out.flush();
    }
}
