package dev.penstock.actors.simulation;

import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.actors.collective.FlatTensor;
import dev.penstock.actors.collective.ShardMap;
import dev.penstock.actors.collective.SoloGroup;
import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.NonFiniteException;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.SharedGradient;
import dev.penstock.actors.spi.StageGroups;
import dev.penstock.actors.spi.StageMirror;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.actors.spi.StepResult;
import dev.penstock.actors.spi.TensorNorm;
import dev.penstock.actors.spi.TrainedState;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.schedules.ir.LayerRange;
import dev.penstock.schedules.ir.WorkUnit;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalDouble;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * A stage of one weight with momentum: y = x w, with some {@link SimAttention} before where there
 * is more than one token. Every state depends on all updates before it, in every bit, and so does
 * every loss. Also its own mirror.
 *
 * <p>Where several have the same weights there are more, so that each has a part of them to sum: y
 * = x (w0 + w1 / 10 + w2 / 10 + ...). Every replica, context part and slice has data of its own,
 * and every shard its own weights, whose products are summed. Where replicas are sharded, each
 * keeps a part of the weights and gathers the others, which are no numbers once they are released.
 *
 * <p>Replicas that take steps alone have their own weights, with gradients of their own data alone,
 * and a {@link SimExchange}. What is held out reads their anchors.
 *
 * <p>Of replicas that do each other's work, gradients and losses are multiples of a power of two,
 * so that their sums have the same bits in any order.
 */
final class SimStage implements StageProgram, StageMirror, TrainedState {
    static final double RATE = 0.02;

    private static final double QUANTA = 1 << 19;

    /** Of a member's part of the weights; the last one has a single weight. */
    private static final int PART = 16;

    /** Sees every change of a state. */
    interface Watch {
        /**
         * Called after each.
         *
         * @param part first of the ranks that have these parameters
         * @param bits of weights and momenta after the update
         */
        void updated(int part, long step, ByteBuffer bits);

        /**
         * Called after what replicas that take steps alone have exchanged was applied.
         *
         * @param step after which it was
         */
        void exchanged(int part, long step, ByteBuffer bits);

        /** Called before a rank waits for such an exchange. */
        void waitsForExchange();
    }

    private final int stage;
    private final RankPlace place;
    private final Scenario scenario;
    private final RankGrid grid;
    private final int rank;
    private final int part;
    private final Watch watch;
    private final SimNan nan;
    private final DeviceScope scope;
    private final int weights;
    private final ShardMap map;

    /** This rank's number among those that the map divides weights among. */
    private final int own;

    private final SimAttention attention;
    private final Tensor weight;
    private final Tensor gradient;

    /** Of a replica that takes steps alone; null if replicas sum their gradients. */
    private final @Nullable SimExchange exchange;

    /** Of these, what is this rank's own: all, or its part. */
    private final Tensor ownWeight;

    private final Tensor ownGradient;
    private final Tensor moment;
    private final Tensor product;

    /** What a unit adds to the gradients of weights, all but their factors. */
    private final Map<WorkUnit, Float> weightGradients = new HashMap<>();

    private StageGroups groups = StageGroups.ALONE;
    private StepKind kind = StepKind.TRAIN;
    private long step;
    private double loss;

    /** By micro-batch; of wired replicas, which keep those of a step that is begun again. */
    private final Map<Integer, Double> losses = new TreeMap<>();

    private final BitSet folded = new BitSet();
    private boolean reduced;
    private Collective gather = SoloGroup.DONE;

    SimStage(
            int stage, RankPlace place, Scenario scenario, Watch watch, SimNan nan, Device device) {
        this.stage = stage;
        this.place = place;
        this.scenario = scenario;
        this.grid = scenario.grid();
        this.rank = grid.rankAt(place);
        this.part = scenario.partOf(rank);
        this.watch = watch;
        this.nan = nan;
        this.weights = weights(grid);
        this.scope = device.memory().child("stage " + stage, Long.MAX_VALUE);
        this.weight = scope.tensor("weight", DType.F32, 1, weights);
        List<Integer> holders = grid.replicaGroup(rank);
        this.map = new ShardMap(weights, scenario.sharded() ? holders.size() : 1);
        this.own = scenario.sharded() ? holders.indexOf(rank) : 0;
        this.attention = new SimAttention(scenario, place, scope);
        this.moment = scope.tensor("moment", DType.F32, 1, (int) map.count(own));
        this.gradient = scope.tensor("gradient", DType.F32, 1, weights);
        this.ownWeight = FlatTensor.stretch(weight, map.from(own), map.count(own));
        this.ownGradient = FlatTensor.stretch(gradient, map.from(own), map.count(own));
        this.product = scope.tensor("product", DType.F32, 1, 1);
        for (int i = 0; i < weights; i++) {
            set(weight, i, firstWeight(grid, stage, place.tensor(), i));
        }
        forgetOthers();
        this.exchange =
                scenario.every() == 0
                        ? null
                        : new SimExchange(
                                scenario,
                                weight,
                                scope,
                                watch::waitsForExchange,
                                after -> watch.exchanged(part, after, bits(tensors())));
    }

    static int weights(RankGrid grid) {
        return PART * (grid.context() * grid.data() - 1) + 1;
    }

    static float firstWeight(RankGrid grid, int stage, int shard, int index) {
        return index == 0 ? (0.9f + 0.07f * stage + 0.1f * shard) / grid.tensor() : 0.001f * index;
    }

    static float data(StepKind kind, long step, RankPlace place, int microBatch, int slice) {
        return (kind == StepKind.TRAIN ? 1f : 2f)
                + 0.013f * step
                + 0.17f * microBatch
                + 0.11f * slice
                + 0.23f * place.context()
                + 0.29f * place.data();
    }

    static float get(Tensor tensor, int index) {
        return tensor.segment().getAtIndex(ValueLayout.JAVA_FLOAT, index);
    }

    static void set(Tensor tensor, int index, float value) {
        tensor.segment().setAtIndex(ValueLayout.JAVA_FLOAT, index, value);
    }

    private static float get(Tensor tensor) {
        return get(tensor, 0);
    }

    private static void set(Tensor tensor, float value) {
        set(tensor, 0, value);
    }

    int part() {
        return part;
    }

    /** With what {@link #bits} returned after a step. */
    SimStage withBits(ByteBuffer bits, long after) {
        MemorySegment all = MemorySegment.ofBuffer(bits);
        ownWeight.segment().copyFrom(all.asSlice(0, ownWeight.bytes()));
        moment.segment().copyFrom(all.asSlice(ownWeight.bytes(), moment.bytes()));
        if (exchange != null) {
            exchange.fill(all.asSlice(ownWeight.bytes() + moment.bytes()), after);
        }
        return this;
    }

    /** Weights, momenta and whatever else there is in one row. */
    static ByteBuffer bits(List<NamedTensor> state) {
        long bytes = state.stream().mapToLong(each -> each.tensor().bytes()).sum();
        var bits = new byte[(int) bytes];
        MemorySegment free = MemorySegment.ofArray(bits);
        for (NamedTensor each : state) {
            free.copyFrom(each.tensor().segment());
            free = free.asSlice(each.tensor().bytes());
        }
        return ByteBuffer.wrap(bits);
    }

    @Override
    public int firstLayer() {
        return stage;
    }

    @Override
    public int layers() {
        return 1;
    }

    @Override
    public int stage() {
        return stage;
    }

    @Override
    public int boundaryRows(int slice) {
        return 1;
    }

    @Override
    public int boundaryColumns() {
        return 1;
    }

    @Override
    public void connect(StageGroups newGroups) {
        groups = newGroups;
        if (exchange != null) {
            exchange.connect(newGroups.replicas());
        }
    }

    @Override
    public void beginStep(StepKind newKind, long newStep) {
        begin(newKind, newStep);
        losses.clear();
        folded.clear();
        gradient.segment().fill((byte) 0); // what is left of a pass that was cut short
        if (exchange != null && kind == StepKind.TRAIN) {
            exchange.beginTraining(step);
        } else if (exchange != null) {
            exchange.settle();
        }
    }

    @Override
    public void resumeStep(long again) {
        if (again != step || folded().isEmpty()) {
            beginStep(StepKind.TRAIN, again);
        } else {
            begin(StepKind.TRAIN, again);
        }
    }

    @Override
    public BitSet folded() {
        boolean exact = scenario.wired(); // other sums depend on their order
        return reduced || !exact ? new BitSet() : (BitSet) folded.clone();
    }

    private void begin(StepKind newKind, long newStep) {
        kind = newKind;
        step = newStep;
        loss = 0;
        reduced = false;
        attention.beginStep();
        weightGradients.clear();
        gather = SoloGroup.DONE;
        forgetOthers();
    }

    /** A multiple of a power of two, so small that sums of a step's are exact. */
    private static float exact(double value) {
        return (float) (Math.rint(value * QUANTA) / QUANTA);
    }

    static float factor(int index) {
        return index == 0 ? 1 : 0.1f;
    }

    /** What others keep is not known until it is gathered. */
    private void forgetOthers() {
        for (int i = 0; map.parts() > 1 && i < weights; i++) {
            boolean kept = map.from(own) <= i && i < map.to(own);
            set(weight, i, kept ? get(weight, i) : Float.NaN);
        }
    }

    @Override
    public Collective gather(LayerRange layers, boolean rising) {
        gather = groups.replicas().allGather(weight, map);
        return gather;
    }

    @Override
    public void release(LayerRange layers) {
        forgetOthers();
    }

    /** Whose data a unit has: micro-batches of wired replicas are numbered over all of them. */
    private RankPlace ofData(WorkUnit unit) {
        int replica = scenario.wired() ? unit.microBatch() / Scenario.MICRO_BATCHES : place.data();
        return new RankPlace(place.pipeline(), place.tensor(), place.context(), replica);
    }

    private float slope() {
        groups.replicas().await(gather);
        Tensor read = exchange != null && kind == StepKind.EVALUATE ? exchange.anchor() : weight;
        float sum = 0;
        for (int i = 0; i < weights; i++) {
            sum += factor(i) * get(read, i);
        }
        return sum;
    }

    @Override
    public void forward(WorkUnit unit, @Nullable Tensor input, @Nullable Tensor output) {
        if (exchange != null) {
            exchange.advance();
        }
        if (kind == StepKind.TRAIN
                && nan.strikes(scenario.wired() ? unit.microBatch() : rank, step)) {
            throw new NonFiniteException(step, unit, "the activation");
        }
        float x =
                input == null
                        ? data(
                                kind,
                                step,
                                ofData(unit),
                                unit.microBatch() % Scenario.MICRO_BATCHES,
                                unit.slice())
                        : get(input);
        float y = ofAllShards(attention.forward(unit, x, groups.context()) * slope());
        if (output == null && scenario.wired()) {
            losses.put(
                    unit.microBatch(),
                    (double) exact(y / (scenario.unitsPerStage() * grid.data())));
        } else if (output == null) {
            loss += y / scenario.unitsPerStage();
        } else {
            set(output, y);
        }
    }

    @Override
    public void backward(
            WorkUnit unit,
            @Nullable Tensor input,
            @Nullable Tensor outputGradient,
            @Nullable Tensor inputGradient) {
        backwardInput(unit, input, outputGradient, inputGradient);
        backwardWeight(unit);
    }

    @Override
    public void backwardInput(
            WorkUnit unit,
            @Nullable Tensor input,
            @Nullable Tensor outputGradient,
            @Nullable Tensor inputGradient) {
        float dy =
                outputGradient == null
                        ? 1f / (scenario.unitsPerStage() * grid.context() * grid.data())
                        : get(outputGradient);
        float attended = attention.backward(unit, dy * slope(), groups.context());
        weightGradients.put(unit, dy * attended);
        if (inputGradient != null) {
            set(inputGradient, ofAllShards(attention.inputGradient(unit)));
        }
    }

    /** Reads what stays, as a real stage does: if it is done twice, only the gradients show it. */
    @Override
    public void backwardWeight(WorkUnit unit) {
        float each = Objects.requireNonNull(weightGradients.get(unit));
        if (scenario.wired() && folded.get(unit.microBatch())) {
            return; // an earlier pass of the step did it
        }
        folded.set(unit.microBatch());
        for (int i = 0; i < weights; i++) {
            float more = each * factor(i);
            set(gradient, i, get(gradient, i) + (scenario.wired() ? exact(more) : more));
        }
    }

    /** Waits for the others, within the op. */
    private float ofAllShards(float part) {
        set(product, part);
        CollectiveGroup shards = groups.tensor();
        shards.await(shards.allReduce(product));
        return get(product);
    }

    @Override
    public Collective reduceGradients() {
        reduced = true;
        if (exchange != null) {
            return SoloGroup.DONE;
        }
        return map.parts() > 1
                ? groups.replicas().reduceScatter(gradient, map)
                : groups.replicas().allReduce(gradient);
    }

    @Override
    public List<SharedGradient> sharedGradients() {
        return List.of();
    }

    @Override
    public StepResult finishStep() {
        boolean tells = stage == grid.pipeline() - 1 && place.tensor() == 0;
        double ofAll =
                losses.values().stream().mapToDouble(Double::doubleValue).sum()
                        * groups.replicas().size();
        var last =
                tells ? OptionalDouble.of(scenario.wired() ? ofAll : loss) : OptionalDouble.empty();
        return new StepResult(
                last, kind == StepKind.TRAIN && speaks() ? List.of(norm()) : List.of());
    }

    /** Of all that hold the same, one counts it and writes it down. */
    private boolean speaks() {
        return scenario.wired() ? groups.replicas().index() == 0 : rank == part;
    }

    /** Of replicas that take steps alone, such that all together have the mean of their squares. */
    private TensorNorm norm() {
        double square = 0;
        for (int i = 0; i < moment.columns(); i++) {
            square += (double) get(ownGradient, i) * get(ownGradient, i);
        }
        return new TensorNorm("w" + part, exchange == null ? square : square * grid.data());
    }

    @Override
    public void skipped(long steps) {
        // no step of this run is
    }

    @Override
    public void update(long committedStep, double clipFactor) {
        // gradients of replicas that take steps alone are divided by the units of all
        double factor = exchange == null ? clipFactor : clipFactor * grid.data();
        for (int i = 0; i < moment.columns(); i++) {
            float m = (float) (0.5f * get(moment, i) + factor * get(ownGradient, i));
            set(moment, i, m);
            set(ownWeight, i, (float) (get(ownWeight, i) - RATE * m));
        }
        gradient.segment().fill((byte) 0);
        folded.clear();
        if (exchange != null) {
            exchange.afterUpdate(committedStep);
        }
        watch.updated(part, committedStep, bits(tensors()));
    }

    @Override
    public List<NamedTensor> state() {
        if (exchange != null) {
            exchange.settle();
        }
        return speaks() ? tensors() : List.of();
    }

    @Override
    public List<NamedTensor> tensors() {
        List<NamedTensor> tensors = new ArrayList<>();
        tensors.add(new NamedTensor("w" + part, List.of(moment.columns()), ownWeight));
        tensors.add(new NamedTensor("m" + part, List.of(moment.columns()), moment));
        if (exchange != null) {
            tensors.addAll(exchange.tensors());
        }
        return tensors;
    }

    @Override
    public List<NamedTensor> gradients() {
        return List.of(new NamedTensor("w" + part, List.of(moment.columns()), ownGradient));
    }

    @Override
    public void replaced() {}

    @Override
    public TrainedState trained() {
        return this;
    }

    @Override
    public void close() {
        scope.close();
    }
}
