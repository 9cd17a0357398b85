package dev.penstock.schedules.lower;

import dev.penstock.schedules.ir.FrozenStages;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/**
 * Adds {@link Op.ReduceGradients}. The last one of a stage of a shared group stands at the end of
 * its rank's program, in rising order of stages: a collective of ranks that stood earlier would
 * make them wait for each other. Members on one rank get theirs as well: their gradients too must
 * be summed; where a rank is alone and sums once, they wait for nobody and stand where the stage's
 * gradients are complete. All others are sums with replicas alone, and stand where their gradients
 * are complete.
 *
 * <p>In a wired order the replicas are ranks of the order, and every sum is such a collective: all
 * of them stand at the end, on every rank that is present, whether or not it has a micro-batch.
 */
public final class InsertReductions {
    private InsertReductions() {}

    /**
     * The schedule with these groups beside its own, with their reductions where it has none yet
     * and those of replicas. Groups that have a stage in common become one; a stage that has a
     * reduction gets no other.
     *
     * @throws IllegalArgumentException for a stage that does not exist
     */
    public static Schedule into(
            Schedule schedule,
            Collection<? extends Collection<Integer>> sharedGroups,
            GradientReduction reduction) {
        return into(schedule, sharedGroups, reduction, FrozenStages.NONE);
    }

    /** The same without reductions of stages of which nothing is trained. */
    public static Schedule into(
            Schedule schedule,
            Collection<? extends Collection<Integer>> sharedGroups,
            GradientReduction reduction,
            FrozenStages frozen) {
        boolean wired = schedule.shape().peers() > 1;
        if (wired && reduction == GradientReduction.PER_MICRO_BATCH) {
            throw new IllegalArgumentException(
                    "peers of a wired order have different micro-batches and sum their gradients per step, got per micro-batch; try per step");
        }
        var grouped =
                new Schedule(
                        schedule.name(),
                        schedule.shape(),
                        schedule.placement(),
                        schedule.programs(),
                        merged(schedule, sharedGroups));
        Set<Integer> shared = new TreeSet<>();
        boolean alone = schedule.shape().ranks() == 1 && reduction == GradientReduction.PER_STEP;
        if (!alone) {
            grouped.reductionGroups().forEach(shared::addAll);
        }
        Set<Integer> done = reduced(schedule);
        done.addAll(frozen.stages());
        var programs = new ArrayList<RankProgram>();
        for (RankProgram program : schedule.programs()) {
            List<Op> ops =
                    reduction == GradientReduction.SHARED_ONLY
                            ? new ArrayList<>(program.ops())
                            : new ReplicaReductions(program.ops(), done, shared, reduction).ops();
            for (int stage : shared) {
                if (!done.contains(stage) && schedule.placement().holds(program.rank(), stage)) {
                    ops.add(new Op.ReduceGradients(stage));
                }
            }
            programs.add(new RankProgram(program.rank(), ops));
        }
        return grouped.withPrograms(programs);
    }

    private static Set<Integer> reduced(Schedule schedule) {
        Set<Integer> stages = new HashSet<>();
        for (RankProgram program : schedule.programs()) {
            for (Op op : program.ops()) {
                if (op instanceof Op.ReduceGradients(int stage)) {
                    stages.add(stage);
                }
            }
        }
        return stages;
    }

    private static List<List<Integer>> merged(
            Schedule schedule, Collection<? extends Collection<Integer>> more) {
        List<Set<Integer>> groups = new ArrayList<>();
        schedule.sharedGroups().forEach(group -> merge(groups, group));
        more.forEach(group -> merge(groups, group));
        groups.removeIf(group -> group.size() < 2);
        return groups.stream().map(List::copyOf).toList();
    }

    private static void merge(List<Set<Integer>> groups, Collection<Integer> added) {
        Set<Integer> group = new TreeSet<>(added);
        groups.removeIf(
                other -> {
                    boolean common = other.stream().anyMatch(added::contains);
                    if (common) {
                        group.addAll(other);
                    }
                    return common;
                });
        groups.add(group);
    }
}
