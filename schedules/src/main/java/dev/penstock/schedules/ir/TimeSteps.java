package dev.penstock.schedules.ir;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The programs of all ranks in lock-step: in every step a rank runs its next op if what that needs
 * of other ranks was made in an earlier step, and is idle otherwise.
 *
 * <pre>
 * 0F0 0F1  .   .  0B0 0B1
 *  .  1F0 1B0 1F1 1B1  .
 * </pre>
 */
final class TimeSteps {
    private final Schedule schedule;
    private final boolean implied;
    private final List<List<@Nullable Op>> rows = new ArrayList<>();
    private final int[] next;

    /** Computations and sends of earlier steps. */
    private final Set<Op> done = new HashSet<>();

    TimeSteps(Schedule schedule) {
        this.schedule = schedule;
        this.implied = !schedule.hasTransfers();
        this.next = new int[schedule.shape().ranks()];
        schedule.programs().forEach(_ -> rows.add(new ArrayList<>()));
        while (step()) {}
        writeRest();
    }

    /** Entry r is what rank r does, null where it is idle; all of one length. */
    List<List<@Nullable Op>> rows() {
        return rows;
    }

    private boolean step() {
        var running = new ArrayList<Op>();
        for (RankProgram program : schedule.programs()) {
            int rank = program.rank();
            boolean runs =
                    next[rank] < program.ops().size() && canRun(program.ops().get(next[rank]));
            @Nullable Op op = runs ? program.ops().get(next[rank]++) : null;
            rows.get(rank).add(op);
            if (op != null) {
                running.add(op);
            }
        }
        for (Op op : running) {
            done.add(op);
            done.addAll(op.computations());
        }
        if (running.isEmpty()) {
            rows.forEach(List::removeLast);
        }
        return !running.isEmpty();
    }

    private boolean canRun(Op op) {
        return switch (op) {
            case Op.Overlapped(Op.Forward forward, Op.Compute partner) ->
                    canRun(forward) && canRun(partner);
            case Op.Forward(WorkUnit u) ->
                    !implied
                            || !schedule.placement().crossesBefore(u)
                            || done.contains(new Op.Forward(u.onStage(u.stage() - 1)));
            case Op.InputGradient backward ->
                    !implied
                            || !schedule.placement().crossesAfter(backward.unit())
                            || gradientIsDone(backward.unit().onStage(op.stage() + 1));
            case Op.ReceiveActivation(WorkUnit u) ->
                    u.stage() > 0 && done.contains(new Op.SendActivation(u.onStage(u.stage() - 1)));
            case Op.ReceiveGradient(WorkUnit u) ->
                    done.contains(new Op.SendGradient(u.onStage(u.stage() + 1)));
            case Op.BackwardWeight _,
                    Op.Recompute _,
                    Op.SendActivation _,
                    Op.SendGradient _,
                    Op.ActivationOp _,
                    Op.ParameterOp _,
                    Op.ReduceGradients _ ->
                    true;
        };
    }

    private boolean gradientIsDone(WorkUnit unit) {
        return done.contains(new Op.Backward(unit)) || done.contains(new Op.BackwardInput(unit));
    }

    /** What is stuck stands behind the last step as it is, for the judge to see. */
    private void writeRest() {
        for (RankProgram program : schedule.programs()) {
            List<Op> ops = program.ops();
            rows.get(program.rank()).addAll(ops.subList(next[program.rank()], ops.size()));
        }
        int length = rows.stream().mapToInt(List::size).max().orElse(0);
        for (List<@Nullable Op> row : rows) {
            row.addAll(Collections.nCopies(length - row.size(), null));
        }
    }
}
