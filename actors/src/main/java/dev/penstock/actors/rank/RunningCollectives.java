package dev.penstock.actors.rank;

import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.fault.RankFaults;
import dev.penstock.actors.fault.StepMoment;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.schedules.ir.LayerRange;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Begins the sums and gathers of a rank's program and advances them alongside its other ops; no
 * other type does. Never blocks. The rank's thread only.
 */
final class RunningCollectives {
    /**
     * A running sum.
     *
     * @param position the position of the op that began it
     */
    private record Reduction(int position, Collective sum) {}

    private final RankProgram program;
    private final Map<Integer, List<GradientExchange>> exchanges;
    private final CollectiveTimes times;
    private final Endpoint endpoint;
    private final RankFaults faults;

    /** The positions of the reductions in which stages exchange the gradients that they share. */
    private final BitSet meetings = new BitSet();

    /** The running sums of gradients over replicas, by stage. */
    private final Map<Integer, Reduction> reductions = new TreeMap<>();

    private final List<Collective> gathers = new ArrayList<>();
    private long pass;

    /** Whether the reduction at the program counter has begun its sum over replicas. */
    private boolean reductionBegun;

    /** The index of the exchange that the reduction at the program counter has reached. */
    private int exchange;

    /** Whether the rank can do nothing until a sum is complete. */
    private boolean standsStill;

    private long standsSince;

    /**
     * @param exchanges for each stage, those of the gradients that it shares with other stages
     */
    RunningCollectives(
            RankProgram program,
            Map<Integer, List<GradientExchange>> exchanges,
            CollectiveTimes times,
            Endpoint endpoint,
            RankFaults faults) {
        this.program = program;
        this.exchanges = exchanges;
        this.times = times;
        this.endpoint = endpoint;
        this.faults = faults;
        for (int stage : exchanges.keySet()) {
            int last = program.lastReductionOf(stage);
            if (last >= 0) { // an evaluation has none
                meetings.set(last);
            }
        }
    }

    void begin(long newPass) {
        pass = newPass;
        reductionBegun = false;
        exchange = 0;
        standsStill = false;
        reductions.clear();
        gathers.clear();
        exchanges.values().forEach(all -> all.forEach(GradientExchange::begin));
    }

    /** Returns whether anything is running that only {@link #advance} moves on. */
    boolean areUnderWay() {
        return !reductions.isEmpty() || !gathers.isEmpty();
    }

    /** Describes what the first one is waiting for; call it only while any {@link #areUnderWay}. */
    String describe() {
        return reductions.isEmpty()
                ? gathers.getFirst().describe()
                : reductions.values().iterator().next().sum().describe();
    }

    /** Returns the bytes of shared gradients sent to other ranks in the pass. */
    long sentBytes() {
        return exchanges.values().stream()
                .flatMap(List::stream)
                .mapToLong(GradientExchange::sentBytes)
                .sum();
    }

    /** Notes that the rank can do nothing until a sum is complete: that time belongs to the sum. */
    void standStill() {
        standsStill = true;
        standsSince = System.nanoTime();
    }

    /** Advances everything that is running. */
    void advance() {
        if (standsStill && !reductions.isEmpty()) {
            Reduction awaited = reductions.values().iterator().next();
            times.ofSum(awaited.position(), System.nanoTime() - standsSince);
        }
        standsStill = false;
        reductions.values().removeIf(this::advance);
        gathers.removeIf(Collective::advance);
    }

    private boolean advance(Reduction reduction) {
        long begun = System.nanoTime();
        boolean done = reduction.sum().advance();
        times.ofSum(reduction.position(), System.nanoTime() - begun);
        return done;
    }

    /**
     * Returns whether an op has to wait because it would change gradients that are being summed.
     */
    boolean holdUp(Op op) {
        if (reductions.isEmpty()) {
            return false;
        }
        return switch (op) {
            case Op.InputGradient backward -> reductions.containsKey(backward.stage());
            case Op.BackwardWeight backward -> reductions.containsKey(backward.stage());
            case Op.Overlapped(Op.Forward _, Op.Compute partner) -> holdUp(partner);
            case Op.ReduceGradients(int stage) -> !reductionBegun && reductions.containsKey(stage);
            case Op.Forward _, Op.Recompute _, Op.Transfer _, Op.ActivationOp _, Op.ParameterOp _ ->
                    false;
        };
    }

    /** Begins to gather parameters; the computation that needs them waits for them itself. */
    Progress gather(StageProgram stage, LayerRange layers, int position) {
        Collective gather = stage.gather(layers, forwardIsNext(stage.stage(), position));
        faults.amongOps(StepMoment.GATHERING);
        if (!gather.advance()) {
            gathers.add(gather);
        }
        return Progress.DONE;
    }

    /** Returns whether the stage's next computation is a forward. */
    private boolean forwardIsNext(int stage, int position) {
        List<Op> ops = program.ops();
        for (int next = position; next < ops.size(); next++) {
            for (Op.Compute part : ops.get(next).computations()) {
                if (part.stage() == stage) {
                    return switch (part) {
                        case Op.Forward _, Op.Recompute _ -> true;
                        case Op.InputGradient _, Op.BackwardWeight _ -> false;
                    };
                }
            }
        }
        return true;
    }

    /**
     * Begins the sum over replicas, which continues alongside later ops. If the stage shares a
     * gradient with another, its last reduction waits for that sum instead, and then exchanges it.
     */
    Progress reduce(StageProgram stage, int position) {
        if (!reductionBegun) {
            beginSum(stage, position);
            reductionBegun = true;
        }
        boolean meets = meetings.get(position);
        if (meets && reductions.containsKey(stage.stage())) {
            return Progress.WAITS_FOR_REPLICAS;
        }
        Progress progress = meets ? exchange(stage.stage()) : Progress.DONE;
        reductionBegun = progress != Progress.DONE;
        return progress;
    }

    private void beginSum(StageProgram stage, int position) {
        long begun = System.nanoTime();
        Collective sum = stage.reduceGradients();
        times.ofSum(position, System.nanoTime() - begun);
        faults.amongOps(StepMoment.REDUCING);
        var reduction = new Reduction(position, sum);
        if (!advance(reduction)) {
            reductions.put(stage.stage(), reduction);
        }
    }

    private Progress exchange(int stage) {
        List<GradientExchange> all = exchanges.getOrDefault(stage, List.of());
        Progress progress = all.get(exchange).advance(endpoint, pass);
        if (progress == Progress.DONE) {
            exchange = exchange + 1 == all.size() ? 0 : exchange + 1;
            return exchange == 0 ? Progress.DONE : Progress.AGAIN;
        }
        return progress;
    }
}
