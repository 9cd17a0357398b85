package dev.penstock.schedules.generate;

import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import java.util.Arrays;
import java.util.List;
import java.util.function.BiFunction;

/** The kinds of schedule by the names that configurations and the command line use. */
public final class Generators {
    /** In the order in which they are listed to a user. */
    private enum Kind {
        GPIPE("gpipe", (shape, options) -> GPipe.schedule(shape, options.backwardOrder())),
        ONE_FORWARD_ONE_BACKWARD("1f1b", (shape, _) -> OneForwardOneBackward.schedule(shape)),
        TERAPIPE("terapipe", (shape, _) -> TeraPipe.schedule(shape)),
        SEQ1F1B("seq1f1b", (shape, _) -> Seq1F1B.schedule(shape));

        private final String label;
        private final BiFunction<PipelineShape, GenerateOptions, Schedule> generator;

        Kind(String label, BiFunction<PipelineShape, GenerateOptions, Schedule> generator) {
            this.label = label;
            this.generator = generator;
        }
    }

    private Generators() {}

    /** The names of all kinds. */
    public static List<String> kinds() {
        return Arrays.stream(Kind.values()).map(kind -> kind.label).toList();
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
        for (Kind known : Kind.values()) {
            if (known.label.equals(kind)) {
                return known.generator.apply(shape, options);
            }
        }
        throw new IllegalArgumentException(
                "unknown kind of schedule '%s', expected one of %s"
                        .formatted(kind, String.join(", ", kinds())));
    }
}
