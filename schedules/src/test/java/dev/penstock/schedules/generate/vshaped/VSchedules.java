package dev.penstock.schedules.generate.vshaped;

import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** All kinds in V placement in small shapes. */
final class VSchedules {
    static final List<String> KINDS = List.of("zb-v", "v-half", "v-min", "dualpipe-v");

    private VSchedules() {}

    static PipelineShape shape(int ranks, int microBatches) {
        return new PipelineShape(ranks, 2, microBatches, List.of(1));
    }

    static Schedule half(PipelineShape shape) {
        return VHalf.schedule(shape, equalCosts(shape));
    }

    static Schedule min(PipelineShape shape) {
        return VMin.schedule(shape, equalCosts(shape));
    }

    private static List<OpCosts> equalCosts(PipelineShape shape) {
        return Collections.nCopies(shape.ranks(), OpCosts.unit());
    }

    /** As many micro-batches as the kind can run. */
    static List<Schedule> upTo(int ranks, int microBatches) {
        var schedules = new ArrayList<Schedule>();
        for (int p = 1; p <= ranks; p++) {
            for (int m = 1; m <= microBatches; m++) {
                for (String kind : KINDS) {
                    if (!kind.equals("dualpipe-v") || m >= 2 * p) {
                        schedules.add(Generators.generate(kind, shape(p, m)));
                    }
                }
            }
        }
        return schedules;
    }
}
