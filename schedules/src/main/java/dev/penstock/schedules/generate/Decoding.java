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
}
