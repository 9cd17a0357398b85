package dev.penstock.actors.rank;

import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.OfferResult;
import dev.penstock.actors.dataplane.direct.DirectTransfers;
import dev.penstock.actors.dataplane.direct.TransferPath;
import dev.penstock.actors.fault.RankFaults;
import dev.penstock.actors.fault.StepMoment;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.actors.spi.StepTraffic;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.schedules.ir.LayerRange;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.OpText;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Walks one rank's program: only the op at the program counter may run. A send completes when the
 * tensor is in the log and waits without credit; a receive waits for the frame with its key. Judge
 * and simulator use the same semantics.
 *
 * <p>Used by the shard's thread only; holds no lock and never blocks: an op that cannot run answers
 * what it waits for.
 */
final class OpInterpreter {
    /** Ops after the one that computes, among which receives are looked for. */
    private static final int LOOK_AHEAD = 4;

    private final int rank;
    private final RankProgram program;
    private final PipelineShape shape;
    private final Topology topology;
    private final boolean trains;

    /** Units that hold their input alone between forward and recompute. */
    private final Set<WorkUnit> recomputed;

    private final Map<Integer, StageProgram> stages;
    private final Map<Integer, List<GradientExchange>> exchanges;

    /** Positions of the reductions with which stages exchange what they share. */
    private final BitSet meetings = new BitSet();

    private final BoundaryBuffers buffers;
    private final Endpoint endpoint;
    private final DirectTransfers direct;
    private final RankFaults faults;
    private final long[] startNanos;
    private final long[] endNanos;

    /** Boundary tensors between the op that makes them and the one that needs them last. */
    private final Map<WorkUnit, Held> inputs = new HashMap<>();

    private final Map<WorkUnit, Held> outputGradients = new HashMap<>();
    private final Map<WorkUnit, Tensor> outputs = new HashMap<>();
    private final Map<WorkUnit, Tensor> inputGradients = new HashMap<>();

    /** Sums of gradients over replicas that are under way, by stage. */
    private final Map<Integer, Reduction> reductions = new TreeMap<>();

    private final List<Collective> gathers = new ArrayList<>();

    /** Tensors that are copied to the device and not taken yet. */
    private final Set<FrameKey> onTheirWay = new HashSet<>();

    private final CollectiveTimes collectives;

    /** Since when the rank cannot go on for a sum; 0 if it can. */
    private long standsSince;

    private long pass;
    private int position;
    private int exchange;
    private boolean reductionBegun;
    private long activationBytes;
    private long gradientBytes;

    /** The op under way, while a recording wants ops. */
    private @Nullable OpEvent recorded;

    /**
     * A sum under way.
     *
     * @param position of the op that began it
     */
    private record Reduction(int position, Collective sum) {}

    /** A tensor in a receive slot, or (channel null) handed over on this rank. */
    private record Held(Tensor tensor, @Nullable ChannelKey channel, int slot) {}

    /**
     * @param rank that runs the program, one of perhaps several
     */
    OpInterpreter(
            int rank,
            Schedule schedule,
            RankProgram program,
            Map<Integer, StageProgram> stages,
            Map<Integer, List<GradientExchange>> exchanges,
            BoundaryBuffers buffers,
            Endpoint endpoint,
            DirectTransfers direct,
            RankFaults faults) {
        this.rank = rank;
        this.program = program;
        this.shape = schedule.shape();
        this.topology = new Topology(schedule);
        this.trains = BufferNeeds.trains(program);
        this.recomputed =
                program.ops().stream()
                        .flatMap(op -> op.computations().stream())
                        .filter(op -> op instanceof Op.Recompute)
                        .map(Op.Compute::unit)
                        .collect(Collectors.toSet());
        this.stages = stages;
        this.exchanges = exchanges;
        for (int stage : exchanges.keySet()) {
            int last = program.lastReductionOf(stage);
            if (last >= 0) { // an evaluation has none
                meetings.set(last);
            }
        }
        this.buffers = buffers;
        this.endpoint = endpoint;
        this.direct = direct;
        this.faults = faults;
        this.startNanos = new long[program.ops().size()];
        this.endNanos = new long[program.ops().size()];
        this.collectives = new CollectiveTimes(program, stages);
    }

    /** Goes back to the start of the program. */
    void begin(long newPass) {
        pass = newPass;
        position = 0;
        exchange = 0;
        reductionBegun = false;
        recorded = null;
        standsSince = 0;
        collectives.begin();
        activationBytes = 0;
        gradientBytes = 0;
        reductions.clear();
        gathers.clear();
        onTheirWay.clear();
        exchanges.values().forEach(all -> all.forEach(GradientExchange::begin));
        Arrays.fill(startNanos, 0);
    }

    /** Whether all ops are done, and what they began. */
    boolean isFinished() {
        return isAtEnd() && !isSumming();
    }

    private boolean isAtEnd() {
        return position == program.ops().size();
    }

    /** Whether collectives are under way that nobody but {@link #advance} moves on. */
    boolean isSumming() {
        return !reductions.isEmpty() || !gathers.isEmpty();
    }

    int position() {
        return position;
    }

    /** The op at the program counter; null after the last one. */
    @Nullable Op current() {
        return isAtEnd() ? null : program.ops().get(position);
    }

    /** When each op of the pass began (a receive: began to wait), on the clock of nanoTime. */
    long[] startNanos() {
        return startNanos.clone();
    }

    /** When each op of the pass was complete, the last one with all that the program began. */
    long[] endNanos() {
        return endNanos.clone();
    }

    /** What gathers and sums took, as {@code RankStep} tells it; when the pass is done. */
    long[] collectiveNanos() {
        return collectives.nanos();
    }

    /** What the pass has sent so far from stage to stage. */
    StepTraffic sent() {
        long tied =
                exchanges.values().stream()
                        .flatMap(List::stream)
                        .mapToLong(GradientExchange::sentBytes)
                        .sum();
        return new StepTraffic(activationBytes, gradientBytes, 0, 0, 0, 0, tied, 0);
    }

    /** Moves collectives on. */
    void moveCollectives() {
        if (!isSumming()) {
            return;
        }
        if (standsSince != 0 && !reductions.isEmpty()) {
            Reduction awaited = reductions.values().iterator().next();
            collectives.ofSum(awaited.position(), System.nanoTime() - standsSince);
        }
        standsSince = 0;
        reductions.values().removeIf(this::advance);
        gathers.removeIf(Collective::advance);
        if (isAtEnd() && !isSumming() && position > 0) {
            endNanos[position - 1] = System.nanoTime();
        }
    }

    private boolean advance(Reduction reduction) {
        long begun = System.nanoTime();
        boolean done = reduction.sum().advance();
        collectives.ofSum(reduction.position(), System.nanoTime() - begun);
        return done;
    }

    /** Whether the op at the program counter would compute now, not look whether it may go on. */
    boolean computesNext() {
        return !isAtEnd()
                && !program.ops().get(position).computations().isEmpty()
                && !addsToAnUnfinishedSum(program.ops().get(position));
    }

    /** What the first collective that is under way waits for; only while {@link #isSumming}. */
    String describeCollective() {
        return reductions.isEmpty()
                ? gathers.getFirst().describe()
                : reductions.values().iterator().next().sum().describe();
    }

    /** Tries the op at the program counter; after {@link #moveCollectives}. */
    Progress advance() {
        Progress progress = tryNext();
        if (progress == Progress.WAITS_FOR_REPLICAS) {
            standsSince = System.nanoTime();
        }
        return progress;
    }

    private Progress tryNext() {
        if (isAtEnd()) {
            return isSumming() ? Progress.WAITS_FOR_REPLICAS : Progress.DONE;
        }
        Op op = program.ops().get(position);
        if (addsToAnUnfinishedSum(op)) {
            return Progress.WAITS_FOR_REPLICAS;
        }
        if (startNanos[position] == 0) {
            faults.beforeOp(op);
            startNanos[position] = System.nanoTime();
            record(op);
            if (!op.computations().isEmpty()) {
                bringWhatIsHere();
            }
        }
        long gathersBefore = collectives.gathers(op);
        Progress progress =
                switch (op) {
                    case Op.Forward(WorkUnit unit) -> forward(unit);
                    case Op.InputGradient backward -> backward(backward);
                    case Op.BackwardWeight(WorkUnit unit) -> backwardWeight(unit);
                    case Op.Overlapped(Op.Forward forward, Op.InputGradient backward) ->
                            overlapped(forward, backward);
                    case Op.SendActivation(WorkUnit unit) -> sendActivation(unit);
                    case Op.SendGradient(WorkUnit unit) -> sendGradient(unit);
                    case Op.ReceiveActivation(WorkUnit unit) ->
                            receive(unit, BoundaryBuffers.activation(unit.stage()), inputs);
                    case Op.ReceiveGradient(WorkUnit unit) ->
                            receive(unit, BoundaryBuffers.gradient(unit.stage()), outputGradients);
                    case Op.ReduceGradients(int stage) -> reduce(stage);
                    case Op.Recompute(WorkUnit unit) -> recompute(unit);
                    case Op.GatherParameters(int stage, LayerRange layers) -> gather(stage, layers);
                    case Op.ReleaseParameters(int stage, LayerRange layers) -> {
                        stage(stage).release(layers);
                        yield Progress.DONE;
                    }
                };
        if (progress == Progress.DONE) {
            if (!op.computations().isEmpty()) {
                collectives.ofComputation(position, collectives.gathers(op) - gathersBefore);
                faults.afterComputation(op, startNanos[position]);
            }
            endNanos[position] = System.nanoTime();
            OpEvent event = recorded;
            if (event != null) {
                event.commit();
                recorded = null;
            }
            position++;
        }
        return progress;
    }

    /** For Java Flight Recorder, if it is on. */
    private void record(Op op) {
        if (OpEvent.isWanted()) {
            var event = new OpEvent();
            event.op = OpText.print(op, shape);
            event.rank = rank;
            event.stage = op.stage();
            event.pass = pass;
            event.begin();
            recorded = event;
        }
    }

    static DataPlaneException linkFailed(String reason) {
        return new DataPlaneException("the data plane failed: " + reason);
    }

    private Progress forward(WorkUnit unit) {
        int stage = unit.stage();
        Held input = inputs.get(unit);
        buffers.reclaim(endpoint, stage);
        Tensor output = topology.isLast(stage) ? null : buffers.takeOutput(stage, unit.slice());
        Tensor in = input == null ? null : input.tensor();
        faults.beforeForward(unit, in);
        stage(stage).forward(unit, in, output);
        faults.afterForward(unit, output);
        if (recomputed.contains(unit)) {
            stage(stage).park(unit);
        }
        if (output != null) {
            if (topology.isLocal(stage, stage + 1)) {
                inputs.put(unit.onStage(stage + 1), new Held(output, null, -1));
            } else {
                prepare(output, BoundaryBuffers.activation(stage + 1));
                outputs.put(unit, output);
            }
        }
        if (!trains) {
            releaseInput(unit);
        }
        return Progress.DONE;
    }

    private Progress recompute(WorkUnit unit) {
        Held input = inputs.get(unit);
        stage(unit.stage()).recompute(unit, input == null ? null : input.tensor());
        return Progress.DONE;
    }

    /** A device that runs one op at a time has nothing to hide behind another. */
    private Progress overlapped(Op.Forward forward, Op.InputGradient backward) {
        forward(forward.unit());
        return backward(backward);
    }

    private Progress backwardWeight(WorkUnit unit) {
        stage(unit.stage()).backwardWeight(unit);
        return Progress.DONE;
    }

    private Progress backward(Op.InputGradient op) {
        WorkUnit unit = op.unit();
        int stage = unit.stage();
        Held input = inputs.get(unit);
        Held outputGradient = outputGradients.get(unit);
        buffers.reclaim(endpoint, stage);
        Tensor inputGradient = stage == 0 ? null : buffers.takeInputGradient(stage, unit.slice());
        Tensor in = input == null ? null : input.tensor();
        Tensor dOut = outputGradient == null ? null : outputGradient.tensor();
        switch (op) {
            case Op.Backward _ -> stage(stage).backward(unit, in, dOut, inputGradient);
            case Op.BackwardInput _ -> stage(stage).backwardInput(unit, in, dOut, inputGradient);
        }
        if (inputGradient != null) {
            if (topology.isLocal(stage - 1, stage)) {
                outputGradients.put(unit.onStage(stage - 1), new Held(inputGradient, null, -1));
            } else {
                prepare(inputGradient, BoundaryBuffers.gradient(stage - 1));
                inputGradients.put(unit, inputGradient);
            }
        }
        releaseInput(unit);
        releaseOutputGradient(unit);
        return Progress.DONE;
    }

    private void releaseInput(WorkUnit unit) {
        Held held = inputs.remove(unit);
        if (held == null) {
            return;
        }
        if (held.channel() == null) {
            buffers.returnOutput(unit.stage() - 1, held.tensor());
        } else {
            release(held.channel(), held.slot());
        }
    }

    private void releaseOutputGradient(WorkUnit unit) {
        Held held = outputGradients.remove(unit);
        if (held == null) {
            return;
        }
        if (held.channel() == null) {
            buffers.returnInputGradient(unit.stage() + 1, held.tensor());
        } else {
            release(held.channel(), held.slot());
        }
    }

    private void release(ChannelKey channel, int slot) {
        if (direct.bring(channel)) {
            direct.release(channel, slot);
        } else {
            endpoint.release(channel, slot);
        }
    }

    /** What links carry goes to where they read as soon as it is computed. */
    private void prepare(Tensor computed, ChannelKey channel) {
        if (direct.way(channel, computed) != TransferPath.DIRECT) {
            computed.buffer().beginToHost(computed.bytes());
        }
    }

    private Progress sendActivation(WorkUnit unit) {
        ChannelKey channel = BoundaryBuffers.activation(unit.stage() + 1);
        Progress progress = offer(unit, channel, produced(outputs, unit));
        if (progress == Progress.DONE) {
            Tensor sent = produced(outputs, unit);
            activationBytes += sent.bytes();
            if (direct.way(channel, sent) == TransferPath.DIRECT) {
                buffers.returnOutput(unit.stage(), sent);
            } else {
                buffers.sentOutput(endpoint, unit.stage(), sent);
            }
            outputs.remove(unit);
        }
        return progress;
    }

    private Progress sendGradient(WorkUnit unit) {
        ChannelKey channel = BoundaryBuffers.gradient(unit.stage() - 1);
        Progress progress = offer(unit, channel, produced(inputGradients, unit));
        if (progress == Progress.DONE) {
            Tensor sent = produced(inputGradients, unit);
            gradientBytes += sent.bytes();
            if (direct.way(channel, sent) == TransferPath.DIRECT) {
                buffers.returnInputGradient(unit.stage(), sent);
            } else {
                buffers.sentInputGradient(endpoint, unit.stage(), sent);
            }
            inputGradients.remove(unit);
        }
        return progress;
    }

    private Progress offer(WorkUnit unit, ChannelKey channel, Tensor tensor) {
        FrameKey frame = frame(unit, channel);
        return switch (direct.way(channel, tensor)) {
            case DIRECT -> progress(direct.offer(frame, tensor));
            case NOT_KNOWN -> Progress.WAITS_FOR_LINK;
            case DATA_PLANE ->
                    tensor.buffer().isCopied()
                            ? progress(endpoint.offer(frame, tensor.staging()))
                            : Progress.WAITS_FOR_LINK;
        };
    }

    private static Progress progress(OfferResult answer) {
        return switch (answer) {
            case OfferResult.Sent _ -> Progress.DONE;
            case OfferResult.NoCredit _ -> Progress.WAITS_FOR_CREDIT;
            case OfferResult.BackPressured _ -> Progress.WAITS_FOR_LINK;
            case OfferResult.Failed(String reason) -> throw linkFailed(reason);
        };
    }

    private Progress receive(WorkUnit unit, ChannelKey channel, Map<WorkUnit, Held> into) {
        FrameKey key = frame(unit, channel);
        int copied = direct.take(key);
        if (copied >= 0) {
            Tensor tensor = buffers.slot(channel, copied, unit.slice());
            into.put(unit, new Held(tensor, channel, copied));
            return Progress.DONE;
        }
        int slot = endpoint.take(key);
        if (slot < 0) {
            return Progress.WAITS_FOR_FRAME;
        }
        Tensor tensor = buffers.slot(channel, slot, unit.slice());
        if (!onTheirWay.remove(key)) {
            tensor.buffer().beginToDevice(tensor.bytes());
        }
        tensor.buffer().kernelsAwaitCopy();
        into.put(unit, new Held(tensor, channel, slot));
        return Progress.DONE;
    }

    /**
     * What the next receives will take goes to the device while the op at the program counter
     * computes, if it is here already.
     */
    private void bringWhatIsHere() {
        int end = Math.min(position + 1 + LOOK_AHEAD, program.ops().size());
        for (Op op : program.ops().subList(position + 1, end)) {
            switch (op) {
                case Op.ReceiveActivation(WorkUnit unit) ->
                        bring(unit, BoundaryBuffers.activation(unit.stage()));
                case Op.ReceiveGradient(WorkUnit unit) ->
                        bring(unit, BoundaryBuffers.gradient(unit.stage()));
                default -> {}
            }
        }
    }

    private void bring(WorkUnit unit, ChannelKey channel) {
        FrameKey key = frame(unit, channel);
        int slot = endpoint.arrived(key);
        if (slot >= 0 && onTheirWay.add(key)) {
            Tensor tensor = buffers.slot(channel, slot, unit.slice());
            tensor.buffer().beginToDevice(tensor.bytes());
        }
    }

    private FrameKey frame(WorkUnit unit, ChannelKey channel) {
        return new FrameKey(channel, pass, unit.microBatch(), unit.slice());
    }

    private boolean addsToAnUnfinishedSum(Op op) {
        if (reductions.isEmpty()) {
            return false;
        }
        if (op instanceof Op.ReduceGradients(int stage)) {
            return !reductionBegun && reductions.containsKey(stage);
        }
        return op.computations().stream()
                .anyMatch(
                        part ->
                                reductions.containsKey(part.stage())
                                        && !(part instanceof Op.Forward)
                                        && !(part instanceof Op.Recompute));
    }

    private Progress gather(int stage, LayerRange layers) {
        Collective gather = stage(stage).gather(layers, forwardIsNext(stage));
        faults.amongOps(StepMoment.GATHERING);
        if (!gather.advance()) {
            gathers.add(gather);
        }
        return Progress.DONE;
    }

    /** Whether the stage goes forward before it goes backward. */
    private boolean forwardIsNext(int stage) {
        return program.ops().subList(position, program.ops().size()).stream()
                .flatMap(op -> op.computations().stream())
                .filter(part -> part.stage() == stage)
                .findFirst()
                .map(part -> part instanceof Op.Forward || part instanceof Op.Recompute)
                .orElse(true);
    }

    /**
     * First the sum over replicas; with a stage's last, then over the stages that share a gradient.
     */
    private Progress reduce(int stage) {
        if (!reductionBegun) {
            long begun = System.nanoTime();
            Collective sum = stage(stage).reduceGradients();
            collectives.ofSum(position, System.nanoTime() - begun);
            faults.amongOps(StepMoment.REDUCING);
            var reduction = new Reduction(position, sum);
            if (!advance(reduction)) {
                reductions.put(stage, reduction);
            }
            reductionBegun = true;
        }
        boolean meets = meetings.get(position);
        if (meets && reductions.containsKey(stage)) {
            return Progress.WAITS_FOR_REPLICAS;
        }
        Progress progress = meets ? exchange(stage) : Progress.DONE;
        reductionBegun = progress != Progress.DONE;
        return progress;
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

    private StageProgram stage(int stage) {
        StageProgram found = stages.get(stage);
        if (found == null) {
            throw new IllegalStateException(
                    "rank %d runs an op of stage %d, which it does not hold (it holds %s)"
                            .formatted(program.rank(), stage, stages.keySet()));
        }
        return found;
    }

    private static Tensor produced(Map<WorkUnit, Tensor> made, WorkUnit unit) {
        Tensor tensor = made.get(unit);
        if (tensor == null) {
            throw new IllegalStateException("nothing was computed to send for " + unit);
        }
        return tensor;
    }
}
