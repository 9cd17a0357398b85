package dev.penstock.runtime.links;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.StageRole;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.CostModel;
import java.util.stream.IntStream;

/**
 * The costs of a run before anything is measured: FLOPs at a rate that is the same on every
 * machine, so that what is decided by them depends on the configuration alone.
 */
public final class NominalCosts implements CostModel {
    /** A rank's: a few cores of a processor of today. */
    public static final double FLOPS_PER_SECOND = 100e9;

    /** By stage: forward and backward of a micro-batch. */
    private final double[] nanos;

    /** By slice: its part of a micro-batch. */
    private final double[] shares;

    /** By stage: how much of its forward the backward runs again, block by block. */
    private final double[] again;

    NominalCosts(Schedule schedule, GptSettings sizes) {
        this(schedule, sizes, FLOPS_PER_SECOND);
    }

    /**
     * @param schedule slices are parts of its sequences
     * @param sizes model, batch and the blocks that run again
     * @param flopsPerSecond of a rank
     */
    public NominalCosts(Schedule schedule, GptSettings sizes, double flopsPerSecond) {
        int sequences = sizes.batch().sequences();
        int context = sizes.shape().context();
        nanos =
                IntStream.range(0, schedule.shape().stages())
                        .mapToDouble(
                                stage ->
                                        (double)
                                                        sizes.partition()
                                                                .flops(
                                                                        sizes.shape(),
                                                                        stage,
                                                                        context)
                                                / parts(schedule, sizes.grid(), stage))
                        .map(flops -> 1e9 * flops * sequences / flopsPerSecond)
                        .toArray();
        var lengths = schedule.shape().sliceLengths();
        double whole = lengths.stream().mapToInt(length -> length).sum();
        shares = lengths.stream().mapToDouble(length -> length / whole).toArray();
        again =
                IntStream.range(0, schedule.shape().stages())
                        .mapToDouble(stage -> runAgain(sizes, stage))
                        .toArray();
    }

    private static double runAgain(GptSettings sizes, int stage) {
        StageRole role = sizes.partition().role(stage);
        int context = sizes.shape().context();
        double flops =
                IntStream.range(role.firstLayer(), role.firstLayer() + role.layers())
                        .filter(sizes.recomputedBlocks()::contains)
                        .mapToDouble(layer -> sizes.shape().layerFlops(layer, context))
                        .sum();
        return flops == 0 ? 0 : flops / sizes.partition().flops(sizes.shape(), stage, context);
    }

    /** Ranks that share a unit of a stage. */
    private static int parts(Schedule schedule, RankGrid grid, int stage) {
        return grid.shardsOf(schedule.placement().rankOf(stage)) * grid.context();
    }

    @Override
    public long nanos(int rank, int position, Op op) {
        return op.computations().stream().mapToLong(this::nanos).sum();
    }

    private long nanos(Op.Compute op) {
        double thirds =
                switch (op) {
                    case Op.Backward _ -> 2 + again[op.stage()];
                    case Op.BackwardInput _ -> 1 + again[op.stage()];
                    case Op.Forward _, Op.BackwardWeight _, Op.Recompute _ -> 1;
                };
        return Math.round(nanos[op.stage()] * shares[op.unit().slice()] * thirds / 3);
    }
}
