package dev.penstock.schedules.generate;

import dev.penstock.schedules.generate.base.Pipeline;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;

/**
 * Inference: forwards alone. A micro-batch is a text, or several side by side; its slices are those
 * of the prompt, as in TeraPipe, then single tokens. Every text's slice comes before anybody's next
 * one: a token is known when the one before it has left the last stage, and until then the other
 * texts keep the stages busy. With as many micro-batches as ranks, nobody waits.
 *
 * <p>4 ranks, 4 texts of 2 slices (F0s1 is slice 1 of text 0):
 *
 * <pre>
 * rank 0 | F0s0 F1s0 F2s0 F3s0 F0s1 F1s1 F2s1 F3s1
 * rank 1 |      F0s0 F1s0 F2s0 F3s0 F0s1 F1s1 F2s1 F3s1
 * rank 2 |           F0s0 F1s0 F2s0 F3s0 F0s1 F1s1 F2s1 F3s1
 * rank 3 |                F0s0 F1s0 F2s0 F3s0 F0s1 F1s1 F2s1 F3s1
 * </pre>
 *
 * <p>That stage 0 may need for a slice what the last stage made of the slice before is no part of
 * the order, and cannot make it hang: all ranks have the same order, and in it a slice never comes
 * before the one that it waits for.
 */
public final class Decoding {
    private Decoding() {}

    /**
     * The order of every rank; any number of ranks, texts and slices.
     *
     * @param shape texts are its micro-batches
     * @throws IllegalArgumentException for chunks
     */
    public static Schedule schedule(PipelineShape shape) {
        return Pipeline.plain(
                "decoding",
                shape,
                (_, program) -> {
                    for (int slice = 0; slice < shape.slices(); slice++) {
                        for (int text = 0; text < shape.microBatches(); text++) {
                            program.forward(0, text, slice);
                        }
                    }
                });
    }

    /**
     * The order of a pipeline in V placement: the first and the last stage are on rank 0, so that
     * what chooses a token and what feeds it need no link of their own, and no stage 0 ever waits
     * for a token: on its rank, a slice comes after the same text's slice before it has left the
     * last stage. With as many micro-batches as ranks, nobody waits.
     *
     * <p>2 ranks, 2 texts of 2 slices; capitals are the low chunk, small letters the high one:
     *
     * <pre>
     * rank 0 | F0s0      F1s0 f0s0 F0s1 f1s0 F1s1 f0s1      f1s1
     * rank 1 |      F0s0 f0s0 F1s0 f1s0 F0s1 f0s1 F1s1 f1s1
     * </pre>
     *
     * @param shape texts are its micro-batches
     * @throws IllegalArgumentException for other than two chunks
     */
    public static Schedule thereAndBack(PipelineShape shape) {
        int units = shape.unitsPerStage();
        return Pipeline.v(
                "decoding-v",
                shape,
                (rank, program) -> {
                    int low = 0;
                    int high = 0;
                    while (high < units) {
                        boolean lowIsNext =
                                low < units
                                        && moment(shape, rank, low)
                                                < moment(shape, shape.stages() - 1 - rank, high);
                        int unit = lowIsNext ? low++ : high++;
                        program.forward(
                                lowIsNext ? 0 : 1,
                                unit % shape.microBatches(),
                                unit / shape.microBatches());
                    }
                });
    }

    /**
     * When a stage works on a unit, if each takes a moment: no two of a rank's at once, and a
     * slice's first stage after the last one of the slice before.
     */
    private static long moment(PipelineShape shape, int stage, int unit) {
        int slice = unit / shape.microBatches();
        int text = unit % shape.microBatches();
        long round = Math.max(shape.ranks(), shape.microBatches());
        return 2 * (slice * round + text) + stage;
    }
}
