package dev.penstock.schedules;

import dev.penstock.schedules.ir.LayerRange;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.validate.Conditions;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;

/** Says whether a schedule is legal, by writing down the definition; it cannot say why not. */
public final class NaiveJudge {
    private final Schedule schedule;
    private final PipelineShape shape;
    private final boolean training;
    private final boolean lowered;
    private final boolean transfers;
    private final Set<Op> present = new HashSet<>();

    private NaiveJudge(Schedule schedule, PassKind passKind) {
        this.schedule = schedule;
        this.shape = schedule.shape();
        this.training = passKind == PassKind.TRAINING;
        this.lowered = !schedule.isComputeOnly();
        this.transfers = schedule.hasTransfers();
        schedule.programs()
                .forEach(program -> program.ops().forEach(op -> present.addAll(parts(op))));
    }

    public static boolean isLegal(Schedule schedule, Conditions conditions) {
        var judge = new NaiveJudge(schedule, conditions.passKind());
        return isLegal(schedule, conditions.passKind(), conditions.inFlight())
                && (!conditions.replicated() || judge.reducesEveryStage());
    }

    public static boolean isLegal(Schedule schedule, PassKind passKind, InFlight inFlight) {
        var judge = new NaiveJudge(schedule, passKind);
        return schedule.programs().stream().allMatch(judge::isComplete)
                && schedule.programs().stream().allMatch(judge::isOrdered)
                && schedule.programs().stream().allMatch(judge::hasItsParameters)
                && new NaiveSimulator(schedule, CostModel.unit(), inFlight).finished();
    }

    private boolean isComplete(RankProgram program) {
        var expected = new ArrayList<Op>();
        for (int i = 0; i < shape.units(); i++) {
            WorkUnit unit = shape.unitAt(i);
            if (schedule.placement().rankOf(unit.stage()) == program.rank()) {
                expected.addAll(expected(unit));
            }
        }
        if (lowered && training) {
            schedule.sharedGroups().stream()
                    .flatMap(List::stream)
                    .filter(stage -> schedule.placement().rankOf(stage) == program.rank())
                    .forEach(stage -> expected.add(new Op.ReduceGradients(stage)));
        }
        List<Op> here =
                program.ops().stream()
                        .flatMap(op -> parts(op).stream())
                        .filter(this::isDue)
                        .toList();
        List<Op> reductions =
                here.stream().filter(op -> op instanceof Op.ReduceGradients).distinct().toList();
        long others = here.stream().filter(op -> !(op instanceof Op.ReduceGradients)).count();
        return others + reductions.size() == expected.size()
                && new HashSet<>(here).equals(new HashSet<>(expected));
    }

    private static List<Op> parts(Op op) {
        return op instanceof Op.Overlapped(Op.Forward forward, Op.Compute partner)
                ? List.of(forward, partner)
                : List.of(op);
    }

    /** Whether it must be there: once, or a reduction at least once. */
    private boolean isDue(Op op) {
        return switch (op) {
            case Op.ParameterOp _ -> false;
            case Op.ReduceGradients(int stage) ->
                    schedule.sharedGroups().stream().anyMatch(group -> group.contains(stage));
            case Op.UnitOp _, Op.Overlapped _ -> true;
        };
    }

    private boolean has(Op wanted) {
        return present.contains(wanted);
    }

    private List<Op> expected(WorkUnit u) {
        var ops = new ArrayList<Op>();
        ops.add(new Op.Forward(u));
        if (training) {
            ops.addAll(
                    has(new Op.BackwardInput(u))
                            ? List.of(new Op.BackwardInput(u), new Op.BackwardWeight(u))
                            : List.of(new Op.Backward(u)));
            if (has(new Op.Recompute(u))) {
                ops.add(new Op.Recompute(u));
            } else if (has(new Op.Offload(u)) || has(new Op.Reload(u))) {
                ops.add(new Op.Offload(u));
                ops.add(new Op.Reload(u));
            }
        }
        if (transfers && u.stage() > 0 && differ(u.stage() - 1, u.stage())) {
            ops.add(new Op.ReceiveActivation(u));
            if (training) {
                ops.add(new Op.SendGradient(u));
            }
        }
        if (transfers && u.stage() < shape.stages() - 1 && differ(u.stage(), u.stage() + 1)) {
            ops.add(new Op.SendActivation(u));
            if (training) {
                ops.add(new Op.ReceiveGradient(u));
            }
        }
        return ops;
    }

    private boolean differ(int stage, int other) {
        return schedule.placement().rankOf(stage) != schedule.placement().rankOf(other);
    }

    /** Every op of this rank that another needs comes before it. */
    private boolean isOrdered(RankProgram program) {
        Set<Op> here = new HashSet<>();
        program.ops().forEach(op -> here.addAll(parts(op)));
        Set<Op> before = new HashSet<>();
        for (int i = 0; i < program.ops().size(); i++) {
            Op op = program.ops().get(i);
            boolean again =
                    op instanceof Op.ReduceGradients
                            && program.ops().subList(i + 1, program.ops().size()).contains(op);
            if (again) {
                continue;
            }
            for (Op needed : parts(op).stream().flatMap(part -> needs(part).stream()).toList()) {
                if (here.contains(needed) && !before.contains(needed)) {
                    return false;
                }
            }
            before.addAll(parts(op));
        }
        return true;
    }

    private boolean reducesEveryStage() {
        return !lowered
                || !training
                || IntStream.range(0, shape.stages())
                        .allMatch(stage -> has(new Op.ReduceGradients(stage)));
    }

    /** Ops of whole stages are on the right rank, and layers come and go in turns. */
    private boolean hasItsParameters(RankProgram program) {
        Map<Integer, Integer> lastLayers = lastLayers(program);
        Set<List<Integer>> resident = new HashSet<>();
        for (Op op : program.ops()) {
            boolean ofStage = op instanceof Op.ParameterOp || op instanceof Op.ReduceGradients;
            if (ofStage && schedule.placement().rankOf(op.stage()) != program.rank()) {
                return false;
            }
            if (op instanceof Op.ParameterOp moved) {
                int last = lastLayers.get(op.stage());
                List<List<Integer>> layers = layers(op.stage(), moved.layers(), last);
                boolean gathers = op instanceof Op.GatherParameters;
                boolean fits =
                        gathers
                                ? layers.stream().noneMatch(resident::contains)
                                : resident.containsAll(layers);
                if (!fits) {
                    return false;
                }
                if (gathers) {
                    resident.addAll(layers);
                } else {
                    layers.forEach(resident::remove);
                }
            }
            for (Op.Compute part : op.computations()) {
                int stage = part.stage();
                if (lastLayers.containsKey(stage)
                        && !resident.containsAll(
                                layers(stage, LayerRange.ALL, lastLayers.get(stage)))) {
                    return false;
                }
            }
        }
        return true;
    }

    /** The highest layer that is named of each stage that is gathered or released. */
    private static Map<Integer, Integer> lastLayers(RankProgram program) {
        Map<Integer, Integer> last = new HashMap<>();
        for (Op op : program.ops()) {
            if (op instanceof Op.ParameterOp moved) {
                last.merge(
                        op.stage(), moved.layers().isAll() ? 0 : moved.layers().last(), Math::max);
            }
        }
        return last;
    }

    /** (stage, layer) of all layers in a range. */
    private static List<List<Integer>> layers(int stage, LayerRange range, int last) {
        return IntStream.rangeClosed(range.first(), Math.min(last, range.last()))
                .mapToObj(layer -> List.of(stage, layer))
                .toList();
    }

    private List<Op> needs(Op op) {
        return switch (op) {
            case Op.Forward(WorkUnit u) ->
                    with(RandomOrders.needs(op, shape), new Op.ReceiveActivation(u));
            case Op.InputGradient backward ->
                    with(RandomOrders.needs(op, shape), new Op.ReceiveGradient(backward.unit()));
            case Op.BackwardWeight _, Op.Recompute _, Op.ActivationOp _ ->
                    RandomOrders.needs(op, shape);
            case Op.SendActivation(WorkUnit u) -> List.of(new Op.Forward(u));
            case Op.SendGradient(WorkUnit u) ->
                    List.of(new Op.Backward(u), new Op.BackwardInput(u));
            case Op.ReceiveActivation _, Op.ReceiveGradient _, Op.Overlapped _, Op.ParameterOp _ ->
                    List.of();
            case Op.ReduceGradients(int stage) -> {
                var needs = new ArrayList<Op>();
                for (int i = 0; i < shape.unitsPerStage(); i++) {
                    WorkUnit unit = shape.unitAt(stage * shape.unitsPerStage() + i);
                    needs.add(new Op.Backward(unit));
                    needs.add(new Op.BackwardWeight(unit));
                }
                yield needs;
            }
        };
    }

    private static List<Op> with(List<Op> ops, Op another) {
        ops.add(another);
        return ops;
    }
}
