package dev.penstock.schedules.generate;

import dev.penstock.schedules.generate.base.BackwardOrder;
import dev.penstock.schedules.generate.base.GenerateOptions;
import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.generate.base.ScheduleKind;
import dev.penstock.schedules.ir.PipelineShape;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * The shapes in which each kind can run, from its definition. A kind that asks for more than its
 * number of chunks and whole sequences has a line here.
 */
public final class LegalShapes {
    private LegalShapes() {}

    /** All shapes of up to 6 ranks, 10 micro-batches, 3 chunks and 4 slices. */
    public static List<PipelineShape> everySmallShape() {
        var shapes = new ArrayList<PipelineShape>();
        for (int ranks = 1; ranks <= 6; ranks++) {
            for (int microBatches = 1; microBatches <= 10; microBatches++) {
                for (int chunks = 1; chunks <= 3; chunks++) {
                    for (int slices = 1; slices <= 4; slices++) {
                        List<Integer> equal = Collections.nCopies(slices, 1);
                        shapes.add(new PipelineShape(ranks, chunks, microBatches, equal));
                    }
                }
            }
        }
        return shapes;
    }

    /** Whether the kind runs in this shape with the default options. */
    public static boolean canRun(String kind, PipelineShape shape) {
        ScheduleKind rules = Generators.kind(kind);
        int ranks = shape.ranks();
        int microBatches = shape.microBatches();
        return rules.chunks().allow(shape.chunks())
                && (rules.sliced() || shape.slices() == 1)
                && switch (kind) {
                    case "interleaved-1f1b", "interleaved-zb" ->
                            microBatches % Math.max(1, microBatches / ranks) == 0;
                    case "dualpipe-v" -> microBatches >= 2 * ranks;
                    default -> true;
                };
    }

    /** The default options and all others that this kind listens to and that fit the shape. */
    public static List<GenerateOptions> optionsOf(String kind, PipelineShape shape) {
        var options = new ArrayList<GenerateOptions>();
        options.add(GenerateOptions.defaults());
        switch (kind) {
            case "gpipe" ->
                    options.add(
                            GenerateOptions.defaults().withBackwardOrder(BackwardOrder.REVERSE));
            case "interleaved-1f1b", "interleaved-zb", "seq1f1b-interleaved" -> {
                for (int group = 1; group <= shape.microBatches(); group++) {
                    boolean even = shape.microBatches() % group == 0;
                    boolean full = group * shape.slices() >= shape.ranks();
                    boolean fewSlices = shape.slices() <= 2;
                    if (even && fewSlices && (full || group == shape.microBatches())) {
                        options.add(GenerateOptions.defaults().withGroupSize(group));
                    }
                }
            }
            case "zb-1p", "zb-2p" -> {
                var slowWeights = new OpCosts(2, 3, 5, 4);
                options.add(GenerateOptions.defaults().withCosts(new OpCosts(4, 3, 2, 1)));
                options.add(GenerateOptions.defaults().withCosts(slowWeights).withMemoryLimit(1.5));
            }
            default -> {}
        }
        return options;
    }
}
