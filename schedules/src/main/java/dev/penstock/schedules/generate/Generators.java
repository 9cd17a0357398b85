package dev.penstock.schedules.generate;

import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import java.util.List;

/** The kinds of schedule by the names that configurations and the command line use. */
public final class Generators {
    private static final List<String> KINDS = List.of("gpipe", "1f1b", "terapipe", "seq1f1b");

    private Generators() {}

    /** The names of all kinds. */
    public static List<String> kinds() {
        return KINDS;
    }

    /** A schedule of this kind with the default options. */
    public static Schedule generate(String kind, PipelineShape shape) {
        return generate(kind, shape, GenerateOptions.defaults());
    }

    /**
     * A schedule of this kind, compute ops only.
     *
     * @throws IllegalArgumentException if there is no such kind, or it cannot run in this shape
     */
    public static Schedule generate(String kind, PipelineShape shape, GenerateOptions options) {
        return switch (kind) {
            case "gpipe" -> GPipe.schedule(shape, options.backwardOrder());
            case "1f1b" -> OneForwardOneBackward.schedule(shape);
            case "terapipe" -> TeraPipe.schedule(shape);
            case "seq1f1b" -> Seq1F1B.schedule(shape);
            default ->
                    throw new IllegalArgumentException(
                            "unknown kind of schedule '%s', expected one of %s"
                                    .formatted(kind, String.join(", ", KINDS)));
        };
    }
}
