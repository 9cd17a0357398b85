package dev.penstock.schedules;

import dev.penstock.schedules.ir.LayerRange;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Orders that can run, though nobody would design them: some op whose inputs are ready is appended
 * to its rank, again and again.
 */
public final class RandomOrders {
    private RandomOrders() {}

    /** Small shapes with loop, V and wild placements, one to three slices. */
    public static Stream<Schedule> some(int count) {
        return IntStream.range(0, count).mapToObj(RandomOrders::schedule);
    }

    /** The same seed gives the same order. */
    public static Schedule schedule(int seed) {
        return schedule(seed, false);
    }

    /** The same with overlapped pairs. */
    public static Stream<Schedule> paired(int count) {
        return IntStream.range(0, count).mapToObj(seed -> schedule(seed, true));
    }

    private static Schedule schedule(int seed, boolean paired) {
        var random = new Random(seed);
        int ranks = 1 + random.nextInt(4);
        int chunks = 1 + random.nextInt(2);
        int slices = 1 + random.nextInt(3);
        var shape =
                new PipelineShape(
                        ranks, chunks, 1 + random.nextInt(4), Collections.nCopies(slices, 1));
        return order(shape, placement(ranks, chunks, random), random, paired);
    }

    /** The schedule with every backward right after a forward of another unit in a pair with it. */
    public static Schedule withPairs(Schedule schedule) {
        var programs = new ArrayList<RankProgram>();
        for (RankProgram program : schedule.programs()) {
            var ops = new ArrayList<Op>();
            for (Op op : program.ops()) {
                if (op instanceof Op.InputGradient backward
                        && !ops.isEmpty()
                        && ops.getLast() instanceof Op.Forward forward
                        && !forward.unit().equals(backward.unit())) {
                    ops.removeLast();
                    ops.add(new Op.Overlapped(forward, backward));
                } else {
                    ops.add(op);
                }
            }
            programs.add(new RankProgram(program.rank(), ops));
        }
        return schedule.withPrograms(programs);
    }

    /** The schedule with gathers, releases and reductions among its ops, at random places. */
    public static Schedule withParameterOps(Schedule schedule, int seed) {
        var random = new Random(seed);
        var programs = new ArrayList<RankProgram>();
        for (RankProgram program : schedule.programs()) {
            var ops = new ArrayList<>(program.ops());
            for (int stage : schedule.placement().stagesOf(program.rank())) {
                for (int i = random.nextInt(4); i > 0; i--) {
                    Op op =
                            switch (random.nextInt(3)) {
                                case 0 -> new Op.ReleaseParameters(stage, LayerRange.ALL);
                                case 1 -> new Op.ReduceGradients(stage);
                                default -> new Op.GatherParameters(stage, LayerRange.ALL);
                            };
                    ops.add(random.nextInt(ops.size() + 1), op);
                }
            }
            programs.add(new RankProgram(program.rank(), ops));
        }
        return schedule.withPrograms(programs);
    }

    private static Placement placement(int ranks, int chunks, Random random) {
        var loop = new ArrayList<>(Placement.loop(ranks, chunks).rankOfStage());
        return switch (random.nextInt(3)) {
            case 0 -> new Placement(loop);
            case 1 -> {
                Collections.reverse(loop.subList(ranks * (chunks - 1), ranks * chunks));
                yield new Placement(loop);
            }
            default -> {
                Collections.shuffle(loop, random);
                yield new Placement(loop);
            }
        };
    }

    private static Schedule order(
            PipelineShape shape, Placement placement, Random random, boolean paired) {
        var left = new ArrayList<Op>();
        int splitPercent = 50 * random.nextInt(3);
        for (int i = 0; i < shape.units(); i++) {
            WorkUnit unit = shape.unitAt(i);
            left.add(new Op.Forward(unit));
            if (random.nextInt(100) < splitPercent) {
                left.add(new Op.BackwardInput(unit));
                left.add(new Op.BackwardWeight(unit));
            } else {
                left.add(new Op.Backward(unit));
            }
            if (random.nextInt(4) == 0) {
                left.add(new Op.Recompute(unit));
            }
        }
        Set<Op> all = Set.copyOf(left);
        List<List<Op>> programs =
                IntStream.range(0, shape.ranks())
                        .<List<Op>>mapToObj(_ -> new ArrayList<>())
                        .toList();
        Set<Op> done = new HashSet<>();
        while (!left.isEmpty()) {
            Op op = left.get(random.nextInt(left.size()));
            if (!isReady(op, shape, all, done)) {
                continue;
            }
            Optional<Op> partner =
                    paired
                            ? left.stream()
                                    .filter(other -> canPair(op, other, placement))
                                    .filter(other -> isReady(other, shape, all, done))
                                    .findAny()
                            : Optional.empty();
            programs.get(placement.rankOf(op.stage()))
                    .add(partner.map(other -> pair(op, other)).orElse(op));
            for (Op ran : partner.map(other -> List.of(op, other)).orElse(List.of(op))) {
                done.add(ran);
                left.remove(ran);
            }
        }
        return new Schedule(
                "random",
                shape,
                placement,
                IntStream.range(0, shape.ranks())
                        .mapToObj(rank -> new RankProgram(rank, programs.get(rank)))
                        .toList());
    }

    private static boolean isReady(Op op, PipelineShape shape, Set<Op> all, Set<Op> done) {
        return done.containsAll(needs(op, shape).stream().filter(all::contains).toList());
    }

    private static boolean canPair(Op op, Op other, Placement placement) {
        boolean kinds =
                (op instanceof Op.Forward || other instanceof Op.Forward)
                        && !(op instanceof Op.Recompute || other instanceof Op.Recompute);
        return kinds
                && !op.equals(other)
                && placement.rankOf(op.stage()) == placement.rankOf(other.stage());
    }

    private static Op pair(Op op, Op other) {
        return op instanceof Op.Forward forward
                ? new Op.Overlapped(forward, (Op.Compute) other)
                : new Op.Overlapped((Op.Forward) other, (Op.Compute) op);
    }

    /** By definition, what a computation needs, whichever rank has it. */
    static List<Op> needs(Op op, PipelineShape shape) {
        var needs = new ArrayList<Op>();
        switch (op) {
            case Op.Forward(WorkUnit u) -> {
                if (u.stage() > 0) {
                    needs.add(new Op.Forward(u.onStage(u.stage() - 1)));
                }
                if (u.slice() > 0) {
                    needs.add(
                            new Op.Forward(new WorkUnit(u.stage(), u.microBatch(), u.slice() - 1)));
                }
            }
            case Op.InputGradient backward -> {
                WorkUnit u = backward.unit();
                needs.add(new Op.Forward(u));
                needs.add(new Op.Recompute(u));
                needs.add(new Op.Reload(u));
                if (u.stage() < shape.stages() - 1) {
                    needs.add(new Op.Backward(u.onStage(u.stage() + 1)));
                    needs.add(new Op.BackwardInput(u.onStage(u.stage() + 1)));
                }
                if (u.slice() < shape.slices() - 1) {
                    var later = new WorkUnit(u.stage(), u.microBatch(), u.slice() + 1);
                    needs.add(new Op.Backward(later));
                    needs.add(new Op.BackwardInput(later));
                }
            }
            case Op.BackwardWeight(WorkUnit u) -> needs.add(new Op.BackwardInput(u));
            case Op.Recompute(WorkUnit u) -> needs.add(new Op.Forward(u));
            case Op.Offload(WorkUnit u) -> needs.add(new Op.Forward(u));
            case Op.Reload(WorkUnit u) -> needs.add(new Op.Offload(u));
            case Op.Overlapped _, Op.Transfer _, Op.ParameterOp _, Op.ReduceGradients _ -> {}
        }
        return needs;
    }
}
