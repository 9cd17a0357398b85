package dev.penstock.runtime.config.run;

import dev.penstock.runtime.config.reading.Setting;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.runtime.model.shape.TrainedParts;
import java.util.List;
import java.util.Optional;

/**
 * Section {@code pipeline}: how the layers are cut into stages and where the stages run.
 *
 * @param stages ranks of the pipeline: one stage each, or {@code chunks}
 * @param chunks stages on each rank; empty: as many as the order's kind is made for
 * @param partition layers of each stage, 0 only for the first (the embedding alone) or the last
 *     (the head alone); empty: cut so that the stages cost about the same FLOPs, as far as they are
 *     trained
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
                        word = "flops",
                        range = "[0, )",
                        doc = "layers of each stage, such as [3, 1]; flops: balanced by cost")
                Optional<List<Integer>> partition,
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

    /** Returns how the layers of a model, of which this is trained, are cut into so many stages. */
    public StagePartition partition(TrainedParts parts, int stageCount) {
        return partition
                .map(layers -> StagePartition.given(parts.shape(), layers))
                .orElseGet(() -> StagePartition.byFlops(parts, stageCount));
    }

    /** Where stages run. */
    public enum Processes {
        SINGLE,
        PER_STAGE
    }
}
