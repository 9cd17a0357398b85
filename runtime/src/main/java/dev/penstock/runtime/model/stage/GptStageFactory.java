package dev.penstock.runtime.model.stage;

import dev.penstock.actors.spi.MemoryUse;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.StageBuilder;
import dev.penstock.actors.spi.StageMirror;
import dev.penstock.actors.spi.TensorPiece;
import dev.penstock.cuda.device.CountedKernels;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.Device;
import dev.penstock.runtime.data.BatchSource;
import dev.penstock.runtime.model.memory.StageScopes;
import dev.penstock.runtime.model.parameters.Parameter;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.GradientSum;
import dev.penstock.runtime.model.shape.OptimizerState;
import dev.penstock.runtime.model.shape.Sharding;
import dev.penstock.runtime.model.shape.StageBudget;
import dev.penstock.runtime.model.shape.StageMemory;
import dev.penstock.runtime.model.shape.StageRole;
import dev.penstock.schedules.ir.Op;
import dev.penstock.schedules.ir.RankProgram;
import dev.penstock.schedules.ir.Schedule;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.function.Predicate;

/**
 * Builds the stages of a run. Safe to use from any thread; each stage belongs to the thread of its
 * caller.
 */
public final class GptStageFactory implements StageBuilder {
    private final GptSettings settings;
    private final List<StageBudget> budgets;
    private final List<Schedule> passes;
    private final boolean pairsAtOnce;
    private final BatchSource batches;
    private final ParameterSource source;

    /**
     * @param budgets entry s is what stage s must be able to hold
     * @param batches tokens of every step
     * @param source first values of parameters and optimizer; what it does not have starts from its
     *     default
     */
    public GptStageFactory(
            GptSettings settings,
            List<StageBudget> budgets,
            BatchSource batches,
            ParameterSource source) {
        this(settings, budgets, List.of(), false, batches, source);
    }

    private GptStageFactory(
            GptSettings settings,
            List<StageBudget> budgets,
            List<Schedule> passes,
            boolean pairsAtOnce,
            BatchSource batches,
            ParameterSource source) {
        if (budgets.size() != settings.partition().stages()) {
            throw new IllegalArgumentException(
                    "%d stages need one budget each, got %d"
                            .formatted(settings.partition().stages(), budgets.size()));
        }
        this.settings = settings;
        this.budgets = List.copyOf(budgets);
        this.passes = List.copyOf(passes);
        this.pairsAtOnce = pairsAtOnce;
        this.batches = batches;
        this.source = source;
    }

    /**
     * Returns the same stages for a certain order: those of a rank share the memory that its
     * programs do not need for all of them at the same time. Stages that serve whatever wiring have
     * the room of their budget.
     *
     * @param order by kind of pass
     */
    public GptStageFactory following(List<Schedule> order) {
        return new GptStageFactory(settings, budgets, order, pairsAtOnce, batches, source);
    }

    /**
     * Returns the same stages where both ops of a pair may run at a time, if the order has pairs
     * and the settings {@linkplain GptSettings#runsPairsAtOnce allow} it.
     */
    public GptStageFactory withPairsAtOnce() {
        return new GptStageFactory(settings, budgets, passes, true, batches, source);
    }

    /** Returns whether both ops of a rank's pairs may run at a time. */
    public boolean runsPairsAtOnce(RankPlace place) {
        return pairsAtOnce
                && settings.runsPairsAtOnce(place)
                && programs(place).stream()
                        .flatMap(program -> program.ops().stream())
                        .anyMatch(op -> op instanceof Op.Overlapped);
    }

    @Override
    public GptStage create(int stage, RankPlace place, Device device) {
        return createAll(List.of(stage), place, device).getFirst();
    }

    @Override
    public List<GptStage> createAll(List<Integer> stages, RankPlace place, Device device) {
        return GptStage.build(
                settings,
                roles(stages, place),
                budgetsOf(stages),
                programs(place),
                place,
                runsPairsAtOnce(place),
                device,
                batches,
                source);
    }

    private List<StageRole> roles(List<Integer> stages, RankPlace place) {
        return stages.stream().map(stage -> settings.role(stage, place)).toList();
    }

    private List<StageBudget> budgetsOf(List<Integer> stages) {
        return stages.stream().map(budgets::get).toList();
    }

    private List<RankProgram> programs(RankPlace place) {
        return settings.wired()
                ? List.of()
                : passes.stream().map(pass -> pass.program(place.pipeline())).toList();
    }

    @Override
    public StageMirror mirror(int stage, RankPlace place, Device device) {
        return GptMirror.build(
                settings,
                settings.role(stage, place),
                Sharding.of(settings, place),
                device,
                source);
    }

    @Override
    public boolean fill(String name, TensorPiece piece, MemorySegment destination) {
        return source.fill(name, piece, destination);
    }

    /** Returns the same stages without first values of what is trained. */
    public GptStageFactory blank() {
        ParameterSource first = source;
        return startingFrom(
                (name, piece, destination) ->
                        isMoment(name)
                                || settings.fineTuning().trains(name)
                                || first.fill(name, piece, destination));
    }

    private static boolean isMoment(String name) {
        return name.startsWith("optimizer.");
    }

    /**
     * Returns the same stages with the values after a step. Replicas that sum their gradients in it
     * are equal, even if they were not where the values come from.
     */
    public GptStageFactory startingAfter(long step, ParameterSource other) {
        boolean equal = settings.outer().map(outer -> outer.sumsIn(step)).orElse(false);
        return startingFrom(equal ? other.ofEqualReplicas() : other);
    }

    /** Returns the same stages with other first values. */
    public GptStageFactory startingFrom(ParameterSource other) {
        return new GptStageFactory(settings, budgets, passes, pairsAtOnce, batches, other);
    }

    /** Same as {@link #predictedMemory(List, RankPlace)} for a rank with one stage. */
    public StageMemory predictedMemory(int stage, RankPlace place) {
        return predictedMemory(List.of(stage), place);
    }

    /**
     * Returns the device memory that the stages of a rank will hold from their creation to their
     * end; nothing is allocated.
     */
    public StageMemory predictedMemory(List<Integer> stages, RankPlace place) {
        List<StageScopes> scopes =
                stages.stream()
                        .map(stage -> StageScopes.counting(settings, "stage " + stage))
                        .toList();
        RankBuffers.allocate(
                scopes,
                settings,
                roles(stages, place),
                place,
                budgetsOf(stages),
                programs(place),
                runsPairsAtOnce(place));
        return scopes.stream()
                .map(StageScopes::memory)
                .reduce(StageMemory.NOTHING, StageMemory::plus);
    }

    /**
     * Returns the device memory that kernels will hold for themselves on a rank; nothing is
     * allocated.
     *
     * @param kernels that hold nothing yet
     * @param lengths that sequences may have, in tokens
     */
    public long kernelBytes(
            List<Integer> stages, RankPlace place, CountedKernels kernels, List<Integer> lengths) {
        for (int stage : stages) {
            KernelRehearsal.of(
                    settings,
                    settings.role(stage, place),
                    place,
                    budgets.get(stage).split(),
                    kernels,
                    lengths);
        }
        return kernels.bytes();
    }

    /** Returns the bytes that an order takes and frees on a stage; nothing is allocated. */
    public StageBytes bytes(int stage, RankPlace place) {
        return StageBytes.of(
                settings,
                settings.role(stage, place),
                Sharding.of(settings, place),
                budgets.get(stage));
    }

    /**
     * Returns the elements of the parameters with which a rank computes in a stage, sharded or not.
     */
    public long parameters(int stage, RankPlace place) {
        return elements(stage, place, _ -> true);
    }

    /** Returns the elements of those of {@link #parameters} that are trained. */
    public long trained(int stage, RankPlace place) {
        return elements(stage, place, Parameter::isTrained);
    }

    /** Returns the elements of those of {@link #parameters} that exist in bf16 alone. */
    public long rounded(int stage, RankPlace place) {
        return elements(stage, place, parameter -> parameter.group().isRounded());
    }

    /** Returns the elements of those of {@link #parameters} that are held as integers. */
    public long integers(int stage, RankPlace place) {
        return elements(stage, place, parameter -> parameter.group().isOfIntegers());
    }

    /** Returns the elements of those of {@link #trained} whose moments are coded in 8 bits. */
    public long coded(int stage, RankPlace place) {
        return elements(
                stage, place, p -> p.isTrained() && p.formOfMoments() == OptimizerState.INT8);
    }

    private long elements(int stage, RankPlace place, Predicate<Parameter> counted) {
        StageRole role = settings.role(stage, place);
        StageScopes scopes = StageScopes.counting(settings, "stage " + stage);
        return GptMirror.allocate(scopes, settings, role, Sharding.of(settings, place))
                .all()
                .stream()
                .filter(counted)
                .mapToLong(parameter -> parameter.spec().piece().elements())
                .sum();
    }

    /**
     * Returns the bytes of parameters, gradients and moments by the general formula (Rajbhandari et
     * al., arXiv 1910.02054, section 5.4): each divided by the replicas where ZeRO shards it.
     * Masters of BF16 runs are sharded with the moments and counted as parameters, according to
     * where they are stored.
     *
     * <p>What is not trained has neither gradients nor moments, and no master where it exists in
     * bf16 alone. Replicas that take steps alone hold the outer parameters and their momentum with
     * the moments, and room for a fragment. Integers, whose scales are few, are never divided.
     *
     * @param all elements
     * @param trained how many of them are trained
     * @param rounded how many of them exist in bf16 alone
     * @param integers how many of them are held as integers
     * @param coded how many of the trained ones have moments in 8 bits
     */
    public List<MemoryUse> formula(
            long all, long trained, long rounded, long integers, long coded) {
        int replicas = settings.grid().data() * settings.grid().context();
        long parameters = all - integers;
        long trainedShard = Math.ceilDiv(trained, (long) replicas);
        long frozen = parameters - trained;
        int zero = settings.zero().stage();
        int parts = zero >= 1 ? replicas : 1;
        long moments =
                OptimizerState.FLOAT32.bytes(Math.ceilDiv(trained - coded, (long) parts))
                        + OptimizerState.INT8.bytes(Math.ceilDiv(coded, (long) parts));
        boolean rounds = settings.precision().copiesWeights();
        long inHalves = rounds ? parameters : rounded;
        long copies =
                DType.BF16.bytes()
                        * (zero >= 3 ? Math.ceilDiv(inHalves, (long) replicas) : inHalves);
        long masters =
                DType.F32.bytes()
                        * (zero >= 3
                                ? Math.ceilDiv(parameters - rounded, (long) replicas)
                                : rounds && zero >= 1
                                        ? trainedShard + frozen - rounded
                                        : parameters - rounded);
        return List.of(
                new MemoryUse(MemoryUse.PARAMETERS, copies + masters + integers * DType.I8.bytes()),
                new MemoryUse(
                        MemoryUse.GRADIENTS, summedBytes() * (zero >= 2 ? trainedShard : trained)),
                new MemoryUse(
                        MemoryUse.OPTIMIZER,
                        2 * moments
                                + settings.outer()
                                        .map(outer -> outer.bytes(trained, settings.grid().data()))
                                        .orElse(0L)));
    }

    /** Bytes of a gradient's element, with the exact sum's if there is one. */
    private int summedBytes() {
        boolean exact = settings.gradientSum() == GradientSum.FIXED_POINT;
        return DType.F32.bytes() + (exact ? DType.I64.bytes() : 0);
    }

    /** Returns the device memory that a mirror of a stage will hold; nothing is allocated. */
    public StageMemory predictedMirrorMemory(int stage, RankPlace place) {
        StageScopes scopes = StageScopes.counting(settings, "mirror of stage " + stage);
        GptMirror.allocate(
                scopes, settings, settings.role(stage, place), Sharding.of(settings, place));
        return scopes.memory();
    }
}
