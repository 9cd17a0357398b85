package dev.penstock.runtime.launch;

import dev.penstock.cuda.nccl.Nccl;
import dev.penstock.runtime.config.RunConfig;
import java.util.Optional;

/** Who sums and gathers in a run, and why, as far as it shows before ranks meet. */
final class CollectivesNote {
    private CollectivesNote() {}

    /** Nothing where sums are in rank order since nobody asked for anything else. */
    static Optional<String> of(RunConfig config) {
        String who =
                switch (config.parallel().collectives()) {
                    case ORDERED -> "";
                    case NCCL -> found(Nccl.probe(), "no NCCL here: ");
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
        return found(Nccl.probe(), "in rank order: ");
    }

    private static String found(Nccl.Probe probe, String otherwise) {
        return switch (probe) {
            case Nccl.Probe.Found(Nccl library) ->
                    "NCCL %s in %s, which adds in an order of its own"
                            .formatted(library.version(), library.file());
            case Nccl.Probe.Missing(String reason) -> otherwise + reason;
        };
    }
}
