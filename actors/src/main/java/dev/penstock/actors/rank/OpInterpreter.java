package dev.penstock.actors.rank;

import dev.penstock.actors.collective.Strands;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.direct.DirectTransfers;
import dev.penstock.actors.fault.RankFaults;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.actors.spi.StepTraffic;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.schedules.ir.LayerRange;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Walks one rank's program: only the op at the program counter may run. A send completes when the
 * tensor is in the log, and waits while it has no credit; a receive waits for the frame with its
 * key. The validator and the simulator use the same semantics.
 *
 * <p>Used by the shard's thread only; holds no lock and never blocks: an op that cannot run returns
 * what it waits for.
 */
final class OpInterpreter {
    private final int rank;
    private final boolean trains;
    private final RankProgram program;
    private final PipelineShape shape;
    private final Topology topology;

    /** Units that keep only their input between forward and recompute. */
    private final Set<WorkUnit> recomputed;

    private final Map<Integer, StageProgram> stages;
    private final BoundaryLinks links;
    private final BoundaryTensors tensors;
    private final CollectiveTimes collectiveTimes;
    private final RunningCollectives collectives;
    private final RankFaults faults;
    private @Nullable Strands strands;
    private final long[] startNanos;
    private final long[] endNanos;
    private Set<Integer> leftOut = Set.of();
    private long pass;
    private int position;

    /** Whether the op at the program counter was tried before. */
    private boolean tried;

    /** The half that ended the pair at the program counter, if one failed. */
    private Op.@Nullable Compute failedHalf;

    /** The event of the op at the program counter, while a recording asks for ops. */
    private @Nullable OpEvent recorded;

    /**
     * @param rank the rank that runs the program, of possibly several
     * @param exchanges for each stage, those of the gradients that it shares with other stages
     */
    OpInterpreter(
            int rank,
            RunPlan plan,
            StepKind kind,
            Map<Integer, StageProgram> stages,
            Map<Integer, List<GradientExchange>> exchanges,
            BoundaryBuffers buffers,
            Endpoint endpoint,
            DirectTransfers direct,
            RankFaults faults) {
        this.rank = rank;
        this.trains = kind == StepKind.TRAIN;
        this.program = plan.program(kind, rank);
        this.shape = plan.schedule(kind).shape();
        this.topology = Topology.of(plan, kind, rank);
        this.recomputed =
                program.ops().stream()
                        .flatMap(op -> op.computations().stream())
                        .filter(op -> op instanceof Op.Recompute)
                        .map(Op.Compute::unit)
                        .collect(Collectors.toSet());
        this.stages = stages;
        this.links = new BoundaryLinks(program, topology, buffers, endpoint, direct);
        this.tensors = new BoundaryTensors(topology, buffers, endpoint, links);
        this.collectiveTimes = new CollectiveTimes(program, stages);
        this.collectives =
                new RunningCollectives(program, exchanges, collectiveTimes, endpoint, faults);
        this.faults = faults;
        this.startNanos = new long[program.ops().size()];
        this.endNanos = new long[program.ops().size()];
    }

    /** Runs both halves of a pair at a time from now on, where their stages can. */
    void runPairsOn(Strands ofRank) {
        strands = ofRank;
    }

    /**
     * Returns to the start of the program.
     *
     * @param without micro-batches whose ops are left out
     */
    void begin(long newPass, Collection<Integer> without) {
        pass = newPass;
        leftOut = Set.copyOf(without);
        position = 0;
        tried = false;
        failedHalf = null;
        recorded = null;
        collectiveTimes.begin();
        collectives.begin(newPass);
        links.begin(newPass);
        tensors.begin();
    }

    /** Returns whether all ops are done, and the collectives that they began. */
    boolean isFinished() {
        return isAtEnd() && !collectives.areUnderWay();
    }

    private boolean isAtEnd() {
        return position == program.ops().size();
    }

    int position() {
        return position;
    }

    /** Returns the op at the program counter; null after the last one. */
    @Nullable Op current() {
        return isAtEnd() ? null : program.ops().get(position);
    }

    /**
     * Returns the op to blame if something fails: the current one, or the half of it that failed.
     */
    @Nullable Op place() {
        return failedHalf == null ? current() : failedHalf;
    }

    /** Returns the collectives that run alongside the op at the program counter. */
    RunningCollectives collectives() {
        return collectives;
    }

    /** Returns when the ops ran; call it once the pass is finished. */
    PassTimes times() {
        return new PassTimes(
                startNanos.clone(),
                endNanos.clone(),
                collectiveTimes.nanos(),
                collectiveTimes.copies());
    }

    /** Returns what the pass has sent so far from stage to stage. */
    StepTraffic sent() {
        return new StepTraffic(
                tensors.activationBytes(),
                tensors.gradientBytes(),
                0,
                0,
                0,
                0,
                collectives.sentBytes(),
                0,
                0);
    }

    /** Advances the collectives that are running. */
    void moveCollectives() {
        if (!collectives.areUnderWay()) {
            return;
        }
        collectives.advance();
        if (isFinished() && position > 0) {
            endNanos[position - 1] = System.nanoTime();
        }
    }

    /** Returns whether the next try would compute, rather than check whether an op may run. */
    boolean computesNext() {
        Op op = current();
        return op != null
                && (isLeftOut(op) || (!op.computations().isEmpty() && !collectives.holdUp(op)));
    }

    /** Tries the op at the program counter; call it after {@link #moveCollectives}. */
    Progress advance() {
        Progress progress = tryNext();
        if (progress == Progress.WAITS_FOR_REPLICAS) {
            collectives.standStill();
        }
        return progress;
    }

    private Progress tryNext() {
        while (!isAtEnd() && isLeftOut(program.ops().get(position))) {
            startNanos[position] = System.nanoTime();
            endNanos[position] = startNanos[position];
            position++;
        }
        Op op = current();
        if (op == null) {
            return collectives.areUnderWay() ? Progress.WAITS_FOR_REPLICAS : Progress.DONE;
        }
        if (collectives.holdUp(op)) {
            return Progress.WAITS_FOR_REPLICAS;
        }
        if (!tried) {
            start(op);
        }
        long gathersBefore = collectiveTimes.gathers(op);
        long waitsBefore = collectiveTimes.copyWaits(op);
        Progress progress = run(op);
        if (progress == Progress.DONE) {
            collectiveTimes.waitedForCopies(position, collectiveTimes.copyWaits(op) - waitsBefore);
            end(op, collectiveTimes.gathers(op) - gathersBefore);
        }
        return progress;
    }

    private boolean isLeftOut(Op op) {
        return switch (op) {
            case Op.UnitOp of -> isLeftOut(of.unit());
            case Op.Overlapped(Op.Forward forward, Op.Compute partner) ->
                    isLeftOut(forward.unit()) && isLeftOut(partner.unit());
            case Op.ParameterOp _, Op.ReduceGradients _ -> false;
        };
    }

    private boolean isLeftOut(WorkUnit unit) {
        return leftOut.contains(unit.microBatch());
    }

    private void start(Op op) {
        faults.beforeOp(op);
        tried = true;
        startNanos[position] = System.nanoTime();
        recorded = OpEvent.begin(op, shape, rank, pass);
        if (!op.computations().isEmpty()) {
            links.bringWhatIsHere(position);
        }
    }

    private void end(Op op, long gatherNanos) {
        if (!op.computations().isEmpty()) {
            collectiveTimes.ofComputation(position, gatherNanos);
            faults.afterComputation(op, startNanos[position]);
        }
        endNanos[position] = System.nanoTime();
        if (recorded != null) {
            recorded.commit();
            recorded = null;
        }
        position++;
        tried = false;
    }

    private Progress run(Op op) {
        return switch (op) {
            case Op.Compute compute -> {
                half(compute, stage(compute.stage())).run();
                yield Progress.DONE;
            }
            case Op.Overlapped(Op.Forward forward, Op.Compute partner) ->
                    overlapped(forward, partner);
            case Op.SendActivation(WorkUnit unit) -> tensors.sendOutput(unit);
            case Op.ReceiveActivation(WorkUnit unit) -> tensors.receiveInput(unit);
            case Op.SendGradient(WorkUnit unit) -> tensors.sendInputGradient(unit);
            case Op.ReceiveGradient(WorkUnit unit) -> tensors.receiveOutputGradient(unit);
            case Op.Offload(WorkUnit unit) -> offload(unit);
            case Op.Reload(WorkUnit unit) -> reload(unit);
            case Op.GatherParameters(int stage, LayerRange layers) ->
                    collectives.gather(stage(stage), layers, position);
            case Op.ReleaseParameters(int stage, LayerRange layers) -> release(stage, layers);
            case Op.ReduceGradients(int stage) -> collectives.reduce(stage(stage), position);
        };
    }

    /**
     * A computation whose tensors are at hand.
     *
     * @param compute touches nothing but its stage and its tensors
     * @param end hands on what was computed and lets go of the rest
     */
    private record Half(Runnable compute, Runnable end) {
        void run() {
            compute.run();
            end.run();
        }
    }

    private Half half(Op.Compute op, StageProgram stage) {
        return switch (op) {
            case Op.Forward(WorkUnit unit) -> forward(unit, stage);
            case Op.InputGradient backward -> backward(backward, stage);
            case Op.BackwardWeight(WorkUnit unit) ->
                    new Half(() -> stage.backwardWeight(unit), () -> {});
            case Op.Recompute(WorkUnit unit) -> {
                Tensor input = tensors.input(unit);
                yield new Half(() -> stage.recompute(unit, input), () -> {});
            }
        };
    }

    private Half forward(WorkUnit unit, StageProgram stage) {
        Tensor input = tensors.input(unit);
        Tensor output = tensors.takeOutput(unit);
        return new Half(
                () -> {
                    faults.beforeForward(unit, input);
                    stage.forward(unit, input, output);
                    faults.afterForward(unit, output);
                },
                () -> {
                    if (recomputed.contains(unit)) {
                        stage.park(unit);
                    }
                    if (output != null) {
                        tensors.computedOutput(unit, output);
                    }
                    if (!topology.hasBackward(unit.stage())) {
                        tensors.releaseInput(unit); // a forward alone needs it only while it runs
                    }
                });
    }

    private Half backward(Op.InputGradient op, StageProgram stage) {
        WorkUnit unit = op.unit();
        Tensor input = tensors.input(unit);
        Tensor outputGradient = tensors.outputGradient(unit);
        Tensor inputGradient = tensors.takeInputGradient(unit);
        return new Half(
                () -> {
                    switch (op) {
                        case Op.Backward _ ->
                                stage.backward(unit, input, outputGradient, inputGradient);
                        case Op.BackwardInput _ ->
                                stage.backwardInput(unit, input, outputGradient, inputGradient);
                    }
                },
                () -> {
                    if (inputGradient != null) {
                        tensors.computedInputGradient(unit, inputGradient);
                    }
                    tensors.releaseInput(unit);
                    tensors.releaseOutputGradient(unit);
                });
    }

    /**
     * Runs both at a time where their stages can, else one after the other. Either way the sums of
     * the second are those of its stage's {@link StageProgram#beside}, so that shards whose devices
     * differ agree.
     */
    private Progress overlapped(Op.Forward forward, Op.Compute partner) {
        StageProgram first = stage(forward.stage());
        StageProgram second = trains ? stage(partner.stage()).beside() : stage(partner.stage());
        boolean both = !isLeftOut(forward.unit()) && !isLeftOut(partner.unit());
        if (both && strands != null && !second.equals(stage(partner.stage()))) {
            Half one = half(forward, first);
            Half other = half(partner, second);
            strands.run(blaming(forward, one.compute()), blaming(partner, other.compute()));
            one.end().run();
            other.end().run();
            return Progress.DONE;
        }
        if (!isLeftOut(forward.unit())) {
            half(forward, first).run();
        }
        if (!isLeftOut(partner.unit())) {
            half(partner, second).run();
        }
        return Progress.DONE;
    }

    /** Notes which half of a pair failed first; both hold the strands' turn where they fail. */
    private Runnable blaming(Op.Compute half, Runnable compute) {
        return () -> {
            try {
                compute.run();
            } catch (RuntimeException | Error e) {
                failedHalf = failedHalf == null ? half : failedHalf;
                throw e;
            }
        };
    }

    private Progress offload(WorkUnit unit) {
        stage(unit.stage()).offload(unit);
        return Progress.DONE;
    }

    private Progress reload(WorkUnit unit) {
        stage(unit.stage()).reload(unit);
        return Progress.DONE;
    }

    private Progress release(int stage, LayerRange layers) {
        stage(stage).release(layers);
        return Progress.DONE;
    }

    private StageProgram stage(int stage) {
        StageProgram found = stages.get(stage);
        if (found == null) {
            throw new IllegalStateException(
                    "rank %d runs an op of stage %d, which it does not hold (it holds %s)"
                            .formatted(program.rank(), stage, stages.keySet()));
        }
        return found;
    }
}
