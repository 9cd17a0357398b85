package dev.penstock.runtime.config.run;

import dev.penstock.runtime.config.reading.Setting;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.runtime.model.shape.TrainedParts;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * Section {@code pipeline}: how the layers are cut into stages and where the stages run.
 *
 * @param stages ranks of the pipeline: one stage each, or {@code chunks}
 * @param chunks stages on each rank; empty: as many as the order's kind is made for
 * @param adaptEvery steps between two looks at what the ranks took, where the plan may change
 * @param adaptMargin share of a step that another plan must win to be taken
 * @param ranksPerNode most ranks on one node of a cluster; empty: as many as its memory takes,
 *     spread as far as there are nodes
 */
public record PipelineSection(
        @Setting(
                        is = "2",
                        range = "[1, 4096]",
                        doc = "stages of the pipeline, one rank each; also parallel.stages")
                int stages,
        @Setting(
                        is = "auto",
                        word = "auto",
                        range = "[1, 4096]",
                        doc =
                                "stages on each rank; auto: as in the order's file, 2 in V"
                                        + " placement, else 1")
                Optional<Integer> chunks,
        @Setting(
                        is = "flops",
                        range = "[0, )",
                        doc =
                                "layers of each stage, such as [3, 1]; flops: balanced by cost;"
                                        + " measured: the same, and cut anew when other stages"
                                        + " would be faster by what the ranks took")
                Partition partition,
        @Setting(
                        is = "10",
                        range = "[1, )",
                        doc =
                                "with partition = measured, schedule.wiring = measured or"
                                        + " schedule.candidates: steps between two looks at what"
                                        + " the ranks took")
                int adaptEvery,
        @Setting(
                        is = "0.05",
                        range = "[0, 1)",
                        doc =
                                "with the same: share of a step that another plan must win to be"
                                        + " taken")
                double adaptMargin,
        @Setting(is = "single", doc = "all stages in one process, or one process each")
                Processes processes,
        @Setting(
                        is = "auto",
                        word = "auto",
                        range = "[1, )",
                        doc =
                                "most ranks on one node of a cluster; auto: as many as its memory"
                                        + " takes")
                Optional<Integer> ranksPerNode) {
    private static final int USUAL_ADAPT_EVERY = 10;

    private static final double USUAL_ADAPT_MARGIN = 0.05;

    /**
     * Returns how the layers of a model, of which this is trained, are cut into stages.
     *
     * @param speeds entry s says how fast stage s computes, in any unit
     */
    public StagePartition partition(TrainedParts parts, double[] speeds) {
        return partition
                .layers()
                .map(layers -> StagePartition.given(parts.shape(), layers))
                .orElseGet(() -> StagePartition.bySpeed(parts, speeds));
    }

    /** Returns the layers of each stage, where they are given. */
    Optional<List<Integer>> layersGiven() {
        return partition.layers();
    }

    /** Whether layers may move while the run goes on. */
    public boolean measured() {
        return partition == Partition.Rule.MEASURED;
    }

    /**
     * Returns what is said here of changes of the plan and has no effect, for people.
     *
     * @param adapts whether the plan may change
     */
    List<String> unusedNotes(boolean adapts, long steps) {
        List<String> notes = new ArrayList<>();
        String why =
                "the plan stays as it is; try pipeline.partition = measured, schedule.wiring = measured, schedule.candidates or recovery.rebalance-after";
        if (adaptEvery != USUAL_ADAPT_EVERY && !adapts) {
            notes.add("pipeline.adapt-every = %d has no effect: %s".formatted(adaptEvery, why));
        }
        if (adaptMargin != USUAL_ADAPT_MARGIN && !adapts) {
            notes.add("pipeline.adapt-margin = %s has no effect: %s".formatted(adaptMargin, why));
        }
        if (measured() && stages == 1) {
            notes.add(
                    "pipeline.partition = measured has no effect: there is only one rank to have layers");
        }
        if (adapts && adaptEvery >= steps) {
            notes.add(
                    "the plan stays as it is: the run ends after run.steps = %d, before pipeline.adapt-every = %d steps have been looked at"
                            .formatted(steps, adaptEvery));
        }
        return notes;
    }

    /** Which layers each stage has. */
    public sealed interface Partition {
        /** What is said of all stages together. */
        enum Rule implements Partition {
            /** Cut so that they cost about the same FLOPs, as far as they are trained. */
            FLOPS,
            /** Cut so at first, and anew while the run goes on. */
            MEASURED
        }

        /**
         * Layers by hand.
         *
         * @param counts of each stage, 0 only for the first (the embedding alone) or the last (the
         *     head alone)
         */
        record Given(List<Integer> counts) implements Partition {
            public Given {
                counts = List.copyOf(counts);
            }
        }

        /** The layers of each stage, where they are given. */
        default Optional<List<Integer>> layers() {
            return this instanceof Given(List<Integer> counts)
                    ? Optional.of(counts)
                    : Optional.empty();
        }
    }

    /** Where stages run. */
    public enum Processes {
        SINGLE,
        PER_STAGE
    }
}
