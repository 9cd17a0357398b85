package dev.penstock.runtime.launch;

import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.NativeLibrary;
import dev.penstock.runtime.config.run.RunConfig;
import java.nio.file.Path;
import java.util.Optional;

/** Who sums and gathers in a run, and why, as far as it shows before ranks meet. */
final class CollectivesNote {
    private CollectivesNote() {}

    /** Nothing where sums are in rank order since nobody asked for anything else. */
    static Optional<String> of(RunConfig config) {
        String who =
                switch (config.parallel().collectives()) {
                    case ORDERED -> "";
                    case NCCL -> found(Devices.nccl(), "no NCCL here: ");
                    case AUTO -> automatic(config);
                };
        return who.isEmpty() ? Optional.empty() : Optional.of("collectives: " + who);
    }

    private static String automatic(RunConfig config) {
        if (!config.device().kind().isCuda()) {
            return "in rank order: NCCL is for GPUs";
        }
        if (config.recovery().mirror()) {
            return "in rank order: mirrors need equal bits";
        }
        return found(Devices.nccl(), "in rank order: ");
    }

    private static String found(NativeLibrary library, String otherwise) {
        return switch (library) {
            case NativeLibrary.Found(String version, Path file) ->
                    "NCCL %s in %s, which adds in an order of its own".formatted(version, file);
            case NativeLibrary.Missing(String reason) -> otherwise + reason;
        };
    }
}
