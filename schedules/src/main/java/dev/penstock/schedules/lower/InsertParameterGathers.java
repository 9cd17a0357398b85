package dev.penstock.schedules.lower;

import dev.penstock.schedules.ir.LayerRange;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.ParameterStays.Stay;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * Gathers the parameters of every stage before the computations that need them and releases them
 * after (ZeRO-3; Rajbhandari et al., ZeRO, section 5.3). With a look-ahead a gather stands some
 * computations early and runs beside them, but never before the stage's last release.
 *
 * <pre>
 * per pass, look-ahead 1, chunks 0 and 2:
 * 0UNSHARD 0F0 2UNSHARD 0F1 0RESHARD 2F0 2F1 2B0 0UNSHARD 2B1 2RESHARD 0B0 0B1 0RESHARD
 * </pre>
 */
public final class InsertParameterGathers {
    private InsertParameterGathers() {}

    /**
     * The schedule with gathers and releases for every stage that has none yet.
     *
     * @throws IllegalArgumentException for a wired order: a gather takes all replicas at once, and
     *     its peers compute different micro-batches
     */
    public static Schedule into(Schedule schedule, GatherSettings settings) {
        if (schedule.shape().peers() > 1) {
            throw new IllegalArgumentException(
                    "a gather takes all peers of a stage at once, but those of a wired order compute different micro-batches; keep whole parameters on every rank");
        }
        return schedule.withPrograms(
                schedule.programs().stream()
                        .map(program -> withGathers(program, settings))
                        .toList());
    }

    private static RankProgram withGathers(RankProgram program, GatherSettings settings) {
        List<Op> computations =
                program.ops().stream().filter(op -> !op.computations().isEmpty()).toList();
        Set<Integer> done =
                program.ops().stream()
                        .filter(op -> op instanceof Op.ParameterOp)
                        .map(Op::stage)
                        .collect(Collectors.toSet());
        var stays = new ArrayList<>(new ParameterStays(computations, settings.residency()).stays());
        stays.removeIf(stay -> done.contains(stay.stage()));
        stays.sort(Comparator.comparingInt(Stay::first).thenComparingInt(Stay::stage));
        Map<Integer, List<Op>> before = new HashMap<>();
        Map<Integer, List<Op>> after = new HashMap<>();
        Map<Integer, Integer> released = new HashMap<>();
        for (Stay stay : stays) {
            int stage = stay.stage();
            int free = released.getOrDefault(stage, 0);
            int gathered = Math.max(free, stay.first() - settings.lookAhead());
            for (LayerRange layers : settings.ranges()) {
                add(before, gathered, new Op.GatherParameters(stage, layers));
                add(after, stay.last(), new Op.ReleaseParameters(stage, layers));
            }
            released.put(stage, stay.last() + 1);
        }
        var ops = new ArrayList<Op>();
        int next = 0;
        for (Op op : program.ops()) {
            if (op.computations().isEmpty()) {
                ops.add(op);
            } else {
                ops.addAll(before.getOrDefault(next, List.of()));
                ops.add(op);
                ops.addAll(after.getOrDefault(next, List.of()));
                next++;
            }
        }
        return new RankProgram(program.rank(), ops);
    }

    private static void add(Map<Integer, List<Op>> ops, int at, Op op) {
        ops.computeIfAbsent(at, _ -> new ArrayList<>(2)).add(op);
    }
}
