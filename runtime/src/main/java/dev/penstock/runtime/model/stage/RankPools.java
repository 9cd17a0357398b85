package dev.penstock.runtime.model.stage;

import static java.util.Objects.requireNonNull;

import dev.penstock.runtime.model.memory.StageScopes;
import dev.penstock.runtime.model.parameters.AccumulatorPool;
import dev.penstock.runtime.model.parameters.GatherPool;
import dev.penstock.runtime.model.parameters.GroupGradient;
import dev.penstock.runtime.model.parameters.NeighbourRoom;
import dev.penstock.runtime.model.parameters.ParameterGroup;
import dev.penstock.runtime.model.parameters.ParameterUnits;
import dev.penstock.runtime.model.parameters.RowPool;
import dev.penstock.runtime.model.parameters.StageParameters;
import dev.penstock.runtime.model.shape.Sharding;
import dev.penstock.runtime.model.shape.ZeroSettings;
import dev.penstock.schedules.ir.LayerRange;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Memory that the stages of a rank use in turns, as much as the rank's programs need at a time.
 *
 * @param gathers room for sharded parameters while they are gathered; null where all have their own
 * @param accumulators room in which sharded gradients add up; null where all have their own
 * @param scratches room in which gradients of single micro-batches add up, besides the room that
 *     gradients have of their own; null where sums are not exact
 */
record RankPools(
        @Nullable GatherPool gathers,
        @Nullable AccumulatorPool accumulators,
        @Nullable RowPool scratches) {

    /**
     * Allocates the pools in the scopes of one of the stages.
     *
     * @param programs of the rank, for every kind of pass; empty for any order
     * @param parameters by stage
     * @param lowest by stage, the lowest block that has a backward
     * @param microBatches by stage, how many may be between the first and the last op of their
     *     backward, whatever the order
     */
    static RankPools allocate(
            StageScopes scopes,
            ZeroSettings zero,
            Sharding sharding,
            List<RankProgram> programs,
            Map<Integer, StageParameters> parameters,
            Map<Integer, Integer> lowest,
            Map<Integer, Integer> microBatches) {
        var needs = new Walk(zero, parameters, lowest);
        if (programs.isEmpty()) {
            needs.ofAnyOrder(microBatches);
        }
        programs.forEach(needs::run);
        return new RankPools(
                sharding.parameters() ? gathers(scopes, sharding, needs, parameters) : null,
                sharding.gradients()
                        ? new AccumulatorPool(
                                new RowPool(
                                        scopes.accumulators(), "accumulator", needs.accumulated))
                        : null,
                sharding.exact()
                        ? new RowPool(
                                scopes.accumulators(), "gradient of a micro-batch", needs.scratches)
                        : null);
    }

    /** What is swapped comes and goes with its op, so that ends of a room become free in turns. */
    private static GatherPool gathers(
            StageScopes scopes,
            Sharding sharding,
            Walk needs,
            Map<Integer, StageParameters> parameters) {
        if (!sharding.swapped() || !needs.neighbours.twoAtATime()) {
            return new GatherPool(new RowPool(scopes.gathered(), "gathered", needs.gathered));
        }
        Map<ParameterGroup, Integer> stages = new HashMap<>();
        parameters.forEach((stage, of) -> of.groups().forEach(group -> stages.put(group, stage)));
        return new GatherPool(new NeighbourRoom(scopes.gathered(), needs.neighbours, stages));
    }

    /**
     * Follows a program. A gather has its room from its op on; a sum keeps its room until it
     * finishes, and an op that finds no other room waits for that.
     */
    private static final class Walk {
        private final ZeroSettings zero;
        private final Map<Integer, ParameterUnits> units = new HashMap<>();
        private final Map<Integer, List<RowPool.Kind>> gradients = new HashMap<>();
        private final Map<Integer, List<GroupGradient>> all = new HashMap<>();
        private final RowPool.Needs gathered = new RowPool.Needs();
        private final NeighbourRoom.Needs neighbours = new NeighbourRoom.Needs();
        private final RowPool.Needs accumulated = new RowPool.Needs();
        private final RowPool.Needs scratches = new RowPool.Needs();

        Walk(
                ZeroSettings zero,
                Map<Integer, StageParameters> parameters,
                Map<Integer, Integer> lowest) {
            this.zero = zero;
            parameters.forEach(
                    (stage, of) -> {
                        units.put(stage, new ParameterUnits(of, requireNonNull(lowest.get(stage))));
                        all.put(stage, of.gradients());
                        gradients.put(
                                stage, of.gradients().stream().map(GroupGradient::row).toList());
                    });
        }

        void ofAnyOrder(Map<Integer, Integer> microBatches) {
            neighbours.ofAnyOrder();
            boolean streamed = zero.residency() == ZeroSettings.Residency.LAYER;
            var everything = new ArrayList<ParameterGroup>();
            for (ParameterUnits each : units.values()) {
                everything.addAll(each.all());
                each.windows(zero.prefetchLayers()).forEach(this::gathered);
            }
            if (!streamed) {
                gathered(everything);
            }
            accumulated(gradients.keySet());
            scratches(microBatches);
        }

        void run(RankProgram program) {
            var here = new LinkedHashSet<ParameterGroup>();
            var open = new LinkedHashSet<Integer>();
            var begun = new BegunBackwards(program);
            for (Op op : program.ops()) {
                if (op instanceof Op.GatherParameters(int stage, LayerRange layers)) {
                    take(stage, groups(stage, layers), here);
                    gathered(here);
                } else if (op instanceof Op.ReleaseParameters(int stage, LayerRange layers)) {
                    giveBack(stage, groups(stage, layers), here);
                } else if (op instanceof Op.ReduceGradients(int stage)) {
                    open.add(stage);
                    accumulated(open);
                    open.remove(stage);
                }
                for (Op.Compute part : op.computations()) {
                    compute(part, here);
                    if (part instanceof Op.InputGradient || part instanceof Op.BackwardWeight) {
                        open.add(part.stage());
                        accumulated(open);
                        scratches(begun.with(part.unit()));
                    }
                }
            }
            units.forEach((stage, of) -> giveBack(stage, of.all(), here));
        }

        private void take(
                int stage, Collection<ParameterGroup> more, Collection<ParameterGroup> here) {
            for (ParameterGroup group : more) {
                if (here.add(group)) {
                    neighbours.take(stage, GatherPool.rowsOf(group));
                }
            }
        }

        private void giveBack(
                int stage, Collection<ParameterGroup> gone, Collection<ParameterGroup> here) {
            for (ParameterGroup group : gone) {
                if (here.remove(group)) {
                    neighbours.giveBack(stage, GatherPool.rowsOf(group));
                }
            }
        }

        /** Parameters not gathered by an op are gathered and released within the computation. */
        private void compute(Op.Compute op, Set<ParameterGroup> here) {
            ParameterUnits stage = units.get(op.stage());
            if (stage != null && !here.containsAll(stage.all())) {
                for (Set<ParameterGroup> window : stage.windows(zero.prefetchLayers())) {
                    var together = new LinkedHashSet<>(here);
                    take(op.stage(), window, together);
                    gathered(together);
                    window.stream()
                            .filter(group -> !here.contains(group))
                            .forEach(group -> giveBack(op.stage(), List.of(group), together));
                }
            }
        }

        private List<ParameterGroup> groups(int stage, LayerRange layers) {
            ParameterUnits of = units.get(stage);
            return of == null ? List.of() : of.of(layers, true);
        }

        private void gathered(Collection<ParameterGroup> together) {
            gathered.together(
                    together.stream().flatMap(group -> GatherPool.rowsOf(group).stream()).toList());
        }

        /** Gradients lend their own row, if they have one, to one micro-batch at a time. */
        private void scratches(Map<Integer, Integer> microBatches) {
            List<RowPool.Kind> together = new ArrayList<>();
            microBatches.forEach(
                    (stage, count) -> {
                        for (GroupGradient gradient : all.getOrDefault(stage, List.of())) {
                            int lent = gradient.own() == null ? 0 : 1;
                            together.addAll(
                                    Collections.nCopies(
                                            Math.max(0, count - lent), gradient.scratch()));
                        }
                    });
            scratches.together(together);
        }

        private void accumulated(Collection<Integer> stages) {
            accumulated.together(
                    stages.stream()
                            .flatMap(stage -> gradients.getOrDefault(stage, List.of()).stream())
                            .toList());
        }
    }
}
