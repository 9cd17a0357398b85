package dev.penstock.runtime.config.order;

import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.config.run.ParallelSection;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.config.run.ScheduleSection;
import dev.penstock.runtime.model.shape.GradientSum;
import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.generate.wired.WiredOrder;
import dev.penstock.schedules.generate.wired.WiredOrder.Backwards;
import dev.penstock.schedules.generate.wired.Wirings;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.Schedule;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** Orders in which replicas do each other's micro-batches, as a configuration asks for them. */
final class WiredOrders {
    private WiredOrders() {}

    /**
     * Generates the order.
     *
     * @param ofOne the pipeline of one replica, with the micro-batches of all
     * @throws IllegalArgumentException if there is none in this shape
     */
    static Schedule generate(RunConfig config, PipelineShape ofOne) {
        PipelineShape shape = ofOne.withPeers(config.parallel().data());
        ScheduleSection section = config.schedule();
        List<OpCosts> costs =
                section.costs().isEmpty()
                        ? Collections.nCopies(shape.ranks(), OpCosts.unit())
                        : section.costsOfRanks();
        Backwards backwards =
                section.kind() == ScheduleSection.Kind.WIRED_ZB ? Backwards.SPLIT : Backwards.FULL;
        return WiredOrder.schedule(
                shape, placement(section, shape, costs), backwards, costs, caps(section, shape));
    }

    /** The most micro-batches that each rank may hold, whatever the wiring. */
    static List<Integer> caps(ScheduleSection section, PipelineShape shape) {
        int more = section.heldMore(shape.pipelineRanks());
        return WiredOrder.usualCaps(shape).stream()
                .map(usual -> Math.min(usual + more, shape.microBatches()))
                .toList();
    }

    private static Placement placement(
            ScheduleSection section, PipelineShape shape, List<OpCosts> costs) {
        Wirings wirings = Wirings.equal(shape).withCosts(costs);
        List<Integer> without = section.without().stream().distinct().toList();
        Placement wired =
                switch (section.wiring()) {
                    case STRAIGHT -> wirings.straight();
                    case BALANCED, MEASURED -> wirings.balanced();
                    case RANDOM -> wirings.random(section.wiringSeed());
                };
        for (int rank : without) { // so one more changes nothing for those that are left
            wired = wirings.without(wired, rank);
        }
        return wired;
    }

    /** What in the rest of a configuration keeps it from running a wired order. */
    static List<Problem> problems(LoadedConfig loaded) {
        RunConfig config = loaded.config();
        ParallelSection parallel = config.parallel();
        List<Problem> problems = new ArrayList<>();
        parallel.outerEvery()
                .ifPresent(
                        every ->
                                problems.add(
                                        loaded.problem(
                                                "parallel.outer.every",
                                                "none where replicas do each other's micro-batches",
                                                Integer.toString(every),
                                                "leave it out, or take another order")));
        if (config.optimizer().gradientSum() != GradientSum.FIXED_POINT) {
            problems.add(
                    loaded.problem(
                            "optimizer.gradient-sum",
                            "fixed-point where replicas do each other's micro-batches: sums must not depend on who computes what",
                            "float32",
                            "set optimizer.gradient-sum = fixed-point"));
        }
        requireOne(loaded, "parallel.tensor", parallel.tensor(), problems);
        requireOne(loaded, "parallel.context", parallel.context(), problems);
        if (parallel.zeroStage() > 0) {
            problems.add(
                    loaded.problem(
                            "parallel.zero.stage",
                            "0 where replicas do each other's micro-batches: each holds all of its stages",
                            Integer.toString(parallel.zeroStage()),
                            "leave it out"));
        }
        if (config.dataPlane().errorFeedback()) {
            problems.add(
                    loaded.problem(
                            "data-plane.error-feedback",
                            "false where replicas do each other's micro-batches: who sends which changes",
                            "true",
                            "leave it out"));
        }
        if (config.dataPlane().deltaRows() > 0) {
            problems.add(
                    loaded.problem(
                            "data-plane.delta-rows",
                            "0 where replicas do each other's micro-batches: who sends which changes",
                            Integer.toString(config.dataPlane().deltaRows()),
                            "leave it out"));
        }
        return problems;
    }

    private static void requireOne(
            LoadedConfig loaded, String key, int got, List<Problem> problems) {
        if (got > 1) {
            problems.add(
                    loaded.problem(
                            key,
                            "1 where replicas do each other's micro-batches",
                            Integer.toString(got),
                            "use more replicas or stages"));
        }
    }
}
