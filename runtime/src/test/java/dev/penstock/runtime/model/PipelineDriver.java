package dev.penstock.runtime.model;

import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.actors.collective.SoloGroup;
import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.SharedGradient;
import dev.penstock.actors.spi.StageGroups;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.actors.spi.StepResult;
import dev.penstock.actors.spi.TensorNorm;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.kernels.HostMatrix;
import dev.penstock.runtime.data.BatchSource;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.StageBudget;
import dev.penstock.runtime.model.stage.GptStage;
import dev.penstock.runtime.model.stage.GptStageFactory;
import dev.penstock.schedules.ir.LayerRange;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.ir.WorkUnit;
import dev.penstock.schedules.lower.ForwardOnly;
import dev.penstock.schedules.simulate.MemoryProfile;
import dev.penstock.schedules.simulate.StagePeak;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.function.IntFunction;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** Runs a pipeline of stages on one thread and one device, each op as soon as its inputs exist. */
public final class PipelineDriver implements AutoCloseable {
    private final Device device;
    private final boolean speaks;
    private final Schedule order;
    private final Schedule evaluation;
    private final Map<Integer, Collective> sums = new HashMap<>();
    private Set<WorkUnit> recomputed = Set.of();
    private final List<GptStage> stages;
    private final DeviceScope boundaries;

    /** The same ones in every step. */
    private final Map<String, Tensor> boundaryTensors = new HashMap<>();

    private final Map<WorkUnit, Tensor> inputs = new HashMap<>();
    private final Map<WorkUnit, Tensor> outputGradients = new HashMap<>();
    private BiConsumer<Long, Double> beforeUpdate = (_, _) -> {};
    private Consumer<String> afterEach = _ -> {};
    private double clipNorm;
    private double lossScale = 1;
    private double gradientNorm;
    private double accuracy = Double.NaN;
    private Map<String, float[]> gradients = Map.of();

    public PipelineDriver(
            GptSettings settings, Schedule order, BatchSource batches, ParameterSource source) {
        this(
                Devices.open(DeviceSettings.DEFAULTS.withKind(DeviceSettings.Kind.REFERENCE)),
                settings,
                order,
                batches,
                source);
    }

    public PipelineDriver(
            Device device,
            GptSettings settings,
            Schedule order,
            BatchSource batches,
            ParameterSource source) {
        this(device, settings, order, batches, source, 0);
    }

    /**
     * @param shard which tensor shard of every stage this is; to be connected with the others
     */
    public PipelineDriver(
            Device device,
            GptSettings settings,
            Schedule order,
            BatchSource batches,
            ParameterSource source,
            int shard) {
        this(device, settings, order, ForwardOnly.of(order), batches, source, shard, 0);
    }

    /**
     * @param order with gathers and reductions, without transfers
     * @param replica which of the replicas that the settings tell of; to be connected with the
     *     others
     */
    public PipelineDriver(
            Device device,
            GptSettings settings,
            Schedule order,
            Schedule evaluation,
            BatchSource batches,
            ParameterSource source,
            int shard,
            int replica) {
        this(
                device,
                settings,
                order,
                evaluation,
                batches,
                source,
                new RankPlace(0, shard, 0, replica));
    }

    /**
     * @param place of the rank of the first stages; to be connected with those of the same stages
     */
    PipelineDriver(
            Device device,
            GptSettings settings,
            Schedule order,
            Schedule evaluation,
            BatchSource batches,
            ParameterSource source,
            RankPlace place) {
        this.device = device;
        this.speaks =
                settings.grid().mesh().innerPart(place.tensor()) == 0
                        && (settings.grid().mesh().isThere() || place.tensor() == 0);
        this.order = order;
        this.evaluation = evaluation;
        List<StageBudget> budgets =
                MemoryProfile.of(order, PassKind.TRAINING).stages().stream()
                        .sorted(Comparator.comparingInt(StagePeak::stage))
                        .map(PipelineDriver::budget)
                        .toList();
        GptStageFactory factory =
                new GptStageFactory(settings, budgets, batches, source)
                        .following(List.of(order, evaluation));
        stages =
                order.programs().stream()
                        .flatMap(
                                program ->
                                        factory
                                                .createAll(
                                                        order.placement().stagesOf(program.rank()),
                                                        new RankPlace(
                                                                program.rank(),
                                                                place.tensor(),
                                                                place.context(),
                                                                place.data()),
                                                        device)
                                                .stream())
                        .sorted(Comparator.comparingInt(GptStage::stage))
                        .toList();
        boundaries = device.memory().child("boundaries", Long.MAX_VALUE);
    }

    private static StageBudget budget(StagePeak peak) {
        return new StageBudget(
                peak.peakUnits(),
                peak.peakUnitsPerSlice(),
                peak.peakMicroBatches(),
                peak.peakBackwardMicroBatches(),
                peak.peakAwaitingWeight(),
                peak.peakAway());
    }

    /** Says through whom the shards of these stages meet, which run the same ops. */
    void connect(CollectiveGroup shards) {
        connect(new StageGroups(shards, SoloGroup.GROUP, SoloGroup.GROUP));
    }

    /** Same with shards on a mesh. */
    void connect(StageGroups groups) {
        stages.forEach(stage -> stage.connect(groups));
    }

    /** Clips gradients to this global norm. */
    public PipelineDriver clippingTo(double norm) {
        clipNorm = norm;
        return this;
    }

    /** Multiplies the loss by this power of two, and divides the gradients by it. */
    PipelineDriver scalingLoss(double scale) {
        lossScale = scale;
        stages.forEach(stage -> stage.scaleLoss(OptionalDouble.of(scale)));
        return this;
    }

    /** Tells a step and its clip factor when its gradients are complete and not yet applied. */
    public void beforeUpdates(BiConsumer<Long, Double> listener) {
        beforeUpdate = listener;
    }

    /** Tells what was done: an op, and what each stage does before and after them. */
    void afterEach(Consumer<String> listener) {
        afterEach = listener;
    }

    /** Runs a training step; its loss, which of several shards the first alone reports. */
    public double train(long step) {
        List<StepResult> results = compute(step);
        gradientNorm = norm(results) / lossScale;
        gradients = copy(GptStage::gradients);
        double clip = clipNorm > 0 ? Math.min(1, clipNorm / (gradientNorm + 1e-6)) : 1;
        beforeUpdate.accept(step, clip);
        update(step, clip / lossScale);
        return loss(results);
    }

    /** Connects the stages of every rank of the order. */
    void connectRanks(IntFunction<StageGroups> groups) {
        for (GptStage stage : stages) {
            stage.connect(groups.apply(order.placement().rankOf(stage.stage())));
        }
    }

    /** A training step as far as its gradients. */
    List<StepResult> compute(long step) {
        begin(StepKind.TRAIN, step);
        run(order.programs());
        stages.forEach(stage -> finishSum(stage.stage()));
        sumSharedGradients();
        return finish();
    }

    private void begin(StepKind kind, long step) {
        for (GptStage stage : stages) {
            stage.beginStep(kind, step);
            afterEach.accept("begin of stage " + stage.stage());
        }
    }

    private List<StepResult> finish() {
        List<StepResult> results = new ArrayList<>();
        for (GptStage stage : stages) {
            results.add(stage.finishStep());
            afterEach.accept("end of stage " + stage.stage());
        }
        return results;
    }

    /** The rest of a training step. */
    void update(long step, double clip) {
        for (GptStage stage : stages) {
            stage.update(step, clip);
            afterEach.accept("update of stage " + stage.stage());
        }
    }

    /** Runs a forward pass over held-out data; its loss. */
    public double evaluate(long index) {
        begin(StepKind.EVALUATE, index);
        run(evaluation.programs());
        return loss(finish());
    }

    /** Begins a training step and leaves it after this many ops of every stage. */
    void abandon(long step, int ops) {
        begin(StepKind.TRAIN, step);
        run(
                order.programs().stream()
                        .map(p -> new RankProgram(p.rank(), p.ops().subList(0, ops)))
                        .toList());
        sums.clear();
    }

    /** Share of the last step's texts whose class was found. */
    double accuracy() {
        return accuracy;
    }

    double gradientNorm() {
        return gradientNorm;
    }

    /** Gradients of the last training step, before clipping. */
    public Map<String, float[]> gradients() {
        return gradients;
    }

    /** Parameters and optimizer state. */
    public Map<String, float[]> state() {
        return copy(GptStage::state);
    }

    public List<GptStage> stages() {
        return stages;
    }

    private void run(List<RankProgram> programs) {
        recomputed =
                programs.stream()
                        .flatMap(program -> program.ops().stream())
                        .filter(op -> op instanceof Op.Recompute)
                        .map(op -> ((Op.Recompute) op).unit())
                        .collect(Collectors.toSet());
        inputs.clear();
        outputGradients.clear();
        int[] next = new int[programs.size()];
        boolean moved = true;
        while (moved) {
            moved = false;
            for (int rank = 0; rank < next.length; rank++) {
                while (next[rank] < programs.get(rank).ops().size()
                        && runIfReady(programs.get(rank).ops().get(next[rank]))) {
                    afterEach.accept(programs.get(rank).ops().get(next[rank]).toString());
                    next[rank]++;
                    moved = true;
                }
            }
        }
        for (int rank = 0; rank < next.length; rank++) {
            if (next[rank] < programs.get(rank).ops().size()) {
                throw new AssertionError("deadlock at " + programs.get(rank).ops().get(next[rank]));
            }
        }
    }

    private boolean runIfReady(Op op) {
        return switch (op) {
            case Op.Forward f -> forward(f.unit());
            case Op.InputGradient b -> backward(b);
            case Op.BackwardWeight(WorkUnit unit) -> {
                finishSum(unit.stage());
                stages.get(unit.stage()).backwardWeight(unit);
                yield true;
            }
            case Op.Overlapped(Op.Forward f, Op.Compute p) ->
                    isReady(f) && isReady(p) && forward(f.unit()) && runIfReady(p);
            case Op.Transfer t -> throw new AssertionError("compute ops only, got " + t);
            case Op.Recompute(WorkUnit unit) -> {
                stages.get(unit.stage()).recompute(unit, inputs.get(unit));
                yield true;
            }
            case Op.Offload(WorkUnit unit) -> {
                stages.get(unit.stage()).offload(unit);
                yield true;
            }
            case Op.Reload(WorkUnit unit) -> {
                stages.get(unit.stage()).reload(unit);
                yield true;
            }
            case Op.GatherParameters(int stage, LayerRange layers) -> {
                stages.get(stage).gather(layers, true);
                yield true;
            }
            case Op.ReleaseParameters(int stage, LayerRange layers) -> {
                stages.get(stage).release(layers);
                yield true;
            }
            case Op.ReduceGradients(int stage) -> {
                finishSum(stage);
                sums.put(stage, stages.get(stage).reduceGradients());
                yield true;
            }
        };
    }

    /** Ends a sum over replicas, if one is under way. */
    private void finishSum(int stage) {
        Collective sum = sums.remove(stage);
        long begun = System.nanoTime();
        while (sum != null && !sum.advance()) {
            if (System.nanoTime() - begun > 20_000_000_000L) {
                throw new AssertionError("stage " + stage + ": " + sum.describe());
            }
            Thread.yield();
        }
    }

    private boolean isReady(Op.Compute op) {
        return switch (op) {
            case Op.Forward _ -> op.stage() == 0 || inputs.containsKey(op.unit());
            case Op.InputGradient _ -> isLast(op.unit()) || outputGradients.containsKey(op.unit());
            case Op.BackwardWeight _, Op.Recompute _ -> true;
        };
    }

    private boolean forward(WorkUnit unit) {
        Tensor input = inputs.get(unit);
        if (unit.stage() > 0 && input == null) {
            return false;
        }
        Tensor output = isLast(unit) ? null : boundary("output of " + unit, unit);
        stages.get(unit.stage()).forward(unit, input, output);
        if (recomputed.contains(unit)) {
            stages.get(unit.stage()).park(unit);
        }
        if (output != null) {
            inputs.put(unit.onStage(unit.stage() + 1), output);
        }
        return true;
    }

    private boolean backward(Op.InputGradient op) {
        WorkUnit unit = op.unit();
        finishSum(unit.stage());
        Tensor outputGradient = outputGradients.get(unit);
        if (!isLast(unit) && outputGradient == null) {
            return false;
        }
        Tensor inputGradient = unit.stage() == 0 ? null : boundary("gradient of " + unit, unit);
        GptStage stage = stages.get(unit.stage());
        Tensor input = inputs.get(unit);
        switch (op) {
            case Op.Backward _ -> stage.backward(unit, input, outputGradient, inputGradient);
            case Op.BackwardInput _ ->
                    stage.backwardInput(unit, input, outputGradient, inputGradient);
        }
        if (inputGradient != null) {
            outputGradients.put(unit.onStage(unit.stage() - 1), inputGradient);
        }
        return true;
    }

    private Tensor boundary(String name, WorkUnit unit) {
        GptStage stage = stages.get(unit.stage());
        int most = stage.boundaryRows(unit.slice());
        return boundaryTensors
                .computeIfAbsent(
                        name,
                        _ -> boundaries.tensor(name, DType.F32, most, stage.boundaryColumns()))
                .rows(0, stage.boundaryRows(unit));
    }

    private boolean isLast(WorkUnit unit) {
        return unit.stage() == stages.size() - 1;
    }

    private void sumSharedGradients() {
        Map<String, List<Tensor>> shared = new TreeMap<>();
        for (GptStage stage : stages) {
            for (SharedGradient gradient : stage.sharedGradients()) {
                shared.computeIfAbsent(gradient.name(), name -> new ArrayList<>())
                        .add(gradient.gradient());
            }
        }
        for (List<Tensor> parts : shared.values()) {
            Tensor sum = parts.getFirst();
            for (Tensor part : parts.subList(1, parts.size())) {
                device.kernels().add(part, sum);
            }
            for (Tensor part : parts.subList(1, parts.size())) {
                device.kernels().copy(sum, part);
            }
        }
    }

    private static double norm(List<StepResult> results) {
        Map<String, Double> squares = new TreeMap<>();
        for (StepResult result : results) {
            for (TensorNorm norm : result.norms()) {
                @Nullable Double twice = squares.put(norm.parameter(), norm.squaredNorm());
                if (twice != null) {
                    throw new AssertionError(norm.parameter() + " is counted twice");
                }
            }
        }
        return Math.sqrt(squares.values().stream().mapToDouble(Double::doubleValue).sum());
    }

    private double loss(List<StepResult> results) {
        accuracy =
                results.stream()
                        .map(StepResult::accuracy)
                        .filter(OptionalDouble::isPresent)
                        .mapToDouble(OptionalDouble::getAsDouble)
                        .findFirst()
                        .orElse(Double.NaN);
        List<OptionalDouble> losses =
                results.stream().map(StepResult::loss).filter(OptionalDouble::isPresent).toList();
        if (losses.size() != (speaks ? 1 : 0)) {
            throw new AssertionError("one stage reports the loss, got " + losses);
        }
        return speaks ? losses.getFirst().getAsDouble() : Double.NaN;
    }

    private interface Tensors {
        List<NamedTensor> of(GptStage stage);
    }

    private Map<String, float[]> copy(Tensors tensors) {
        Map<String, float[]> copies = new TreeMap<>();
        for (GptStage stage : stages) {
            for (NamedTensor t : tensors.of(stage)) {
                copies.put(t.name(), floats(t.tensor()));
            }
        }
        return copies;
    }

    static float[] floats(Tensor tensor) {
        if (!tensor.type().isScaled()) {
            return tensor.contents().toArray(ValueLayout.JAVA_FLOAT);
        }
        float[] all = new float[Math.toIntExact(tensor.elements())];
        HostMatrix integers = HostMatrix.of(tensor);
        for (int row = 0; row < tensor.rows(); row++) {
            float[] values = integers.row(row);
            System.arraycopy(values, 0, all, row * values.length, values.length);
        }
        return all;
    }

    @Override
    public void close() {
        boundaries.close();
        stages.forEach(GptStage::close);
        device.close();
    }
}
