package dev.penstock.runtime.config.run;

import dev.penstock.actors.collective.CollectiveLibrary;
import dev.penstock.actors.dataplane.ChannelCodecs;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.runtime.model.shape.SwapPartition;
import dev.penstock.runtime.model.shape.TrainedParts;
import dev.penstock.runtime.model.shape.ZeroSettings;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.IntStream;

/**
 * Everything that decides a run. Made by {@link ConfigLoader}, which accepts only values that fit
 * together; immutable.
 *
 * @param fault what goes wrong on purpose; the last, for it alone is no section
 */
public record RunConfig(
        RunSection run,
        ModelSection model,
        DataSection data,
        BatchSection batch,
        PipelineSection pipeline,
        ParallelSection parallel,
        ScheduleSection schedule,
        OptimizerSection optimizer,
        FineTuneSection fineTune,
        DeviceSection device,
        EvaluationSection evaluation,
        CheckpointSection checkpoint,
        DataPlaneSection dataPlane,
        TimeoutSection timeouts,
        RecoverySection recovery,
        ReportSection report,
        List<FaultEntry> fault) {
    /** The share of a run's speed in memory that a swapped one is told how to reach. */
    private static final double NEARLY_RESIDENT = 0.85;

    /** What is expected of {@link #rowsOfUnits} where shards divide them, without the number. */
    public static final String ROWS_OF_SHARDS =
            "rows of every unit (sequences of a micro-batch x tokens of a slice / parallel.context)"
                    + " in multiples of parallel.tensor = ";

    public RunConfig {
        fault = List.copyOf(fault);
    }

    /** Stages on each rank; {@link ConfigLoader} has looked into the file of an order. */
    public int chunks() {
        int usual = schedule.file().isPresent() ? 1 : schedule.kind().usualChunks();
        return pipeline.chunks().orElse(usual);
    }

    /** Stages of the whole pipeline: ranks times chunks. */
    public int stages() {
        return pipeline.stages() * chunks();
    }

    /**
     * How the layers of its model, of which this is trained, are cut into so many stages: those of
     * more tensor shards compute faster. An order of several stages on a rank cuts equal ones.
     */
    public StagePartition partition(TrainedParts parts, int stages) {
        if (device.swap().isPresent() && pipeline.layersGiven().isEmpty()) {
            Optional<StagePartition> cut = swapPartition(parts.shape()).into(stages);
            if (cut.isPresent()) {
                return cut.get();
            }
        }
        RankGrid grid = grid();
        boolean uneven = grid.isUneven() && grid.pipeline() == stages;
        double[] speeds =
                IntStream.range(0, stages)
                        .mapToDouble(s -> uneven ? grid.shardsOf(s) : 1)
                        .toArray();
        return pipeline.partition(parts, speeds);
    }

    private SwapPartition swapPartition(ModelShape shape) {
        return new SwapPartition(
                shape,
                batch.sequencesPerMicroBatch() * model.context(),
                microBatchesOfReplica(),
                device.swapIntensity());
    }

    /**
     * Returns how fast a swapped step of this cut is for its micro-batches, for people; empty where
     * nothing is swapped, or where there are enough of them.
     */
    public Optional<String> swapNote(StagePartition partition, ModelShape shape) {
        if (device.swap().isEmpty()) {
            return Optional.empty();
        }
        SwapPartition swap = swapPartition(shape);
        int reaching = reaching(swap, partition);
        return Math.max(reaching, swap.enough(partition)) <= microBatchesOfReplica()
                ? Optional.empty()
                : Optional.of(
                        "device.swap: a step has %d micro-batches: from %d on loads hide behind computing, from %d on it is %.0f %% as fast as in memory, with the update of what is on disk (by device.swap-intensity = %d)"
                                .formatted(
                                        microBatchesOfReplica(),
                                        swap.enough(partition),
                                        reaching,
                                        100 * NEARLY_RESIDENT,
                                        device.swapIntensity()));
    }

    private int reaching(SwapPartition swap, StagePartition partition) {
        return swap.reaching(
                partition, NEARLY_RESIDENT, optimizer.state(), schedule.recompute().units());
    }

    /**
     * How the ranks of the run divide its work. Shards that do not suit its stages are refused
     * before anything is placed; until then this is the grid of the most of them everywhere.
     */
    public RankGrid grid() {
        return new RankGrid(
                pipeline.stages(),
                parallel.tensor(),
                parallel.context(),
                parallel.data(),
                parallel.shards().suit(pipeline.stages()) && !parallel.mesh().isThere()
                        ? parallel.shards().counts()
                        : List.of(),
                parallel.mesh());
    }

    /** What ranks divide, or swap whole. */
    public ZeroSettings zero() {
        return device.swapSettings().map(ZeroSettings::swapped).orElseGet(parallel::zero);
    }

    /** Whether devices sum and gather by themselves; auto gives way to what equal bits need. */
    public CollectiveLibrary library() {
        return switch (parallel.collectives()) {
            case ORDERED -> CollectiveLibrary.NEVER;
            case NCCL -> CollectiveLibrary.REQUIRED;
            case AUTO ->
                    device.kind().isCuda()
                                    && !recovery.mirror()
                                    && !dataPlane.emulated().areEmulated()
                            ? CollectiveLibrary.WHERE_FOUND
                            : CollectiveLibrary.NEVER;
        };
    }

    /** Micro-batches of a step that one replica runs. */
    public int microBatchesOfReplica() {
        return batch.microBatches() / parallel.data();
    }

    /** Returns how many tokens the sequences of a micro-batch may have, rising. */
    public List<Integer> lengths() {
        int context = model.context();
        if (data.packing() != DataSection.Packing.LENGTHS) {
            return List.of(context);
        }
        int step = batch.lengthStep();
        return IntStream.rangeClosed(1, Math.ceilDiv(context, step))
                .mapToObj(i -> (int) Math.min(context, (long) i * step))
                .toList();
    }

    /** Returns what is said in it and has no effect, for people. */
    public List<String> unusedNotes() {
        List<String> notes = new ArrayList<>();
        data.unusedNote().ifPresent(notes::add);
        notes.addAll(batch.unusedNotes(data.packing(), model.context()));
        notes.addAll(parallel.unusedNotes(run.steps()));
        notes.addAll(dataPlane.unusedNotes(pipeline.stages(), chunks()));
        dataPlane.unusedLinksNote(grid().ranks()).ifPresent(notes::add);
        notes.addAll(pipeline.unusedNotes(adapts(), run.steps()));
        notes.addAll(schedule.unusedNotes(parallel.data()));
        notes.addAll(recovery.unusedNotes());
        return notes;
    }

    /** Whether the run may change its plan while it goes on. */
    public boolean adapts() {
        return adaptsAtOnce() || rebalancesLayers();
    }

    /** The same, wherever its ranks live. */
    public boolean adaptsAtOnce() {
        return pipeline.measured() || schedule.measured() || !schedule.candidates().isEmpty();
    }

    /**
     * Whether layers may move when ranks live elsewhere than at first. In a wired order
     * micro-batches move instead.
     */
    public boolean rebalancesLayers() {
        return recovery.rebalanceAfter().isPresent()
                && !schedule.isWiredKind()
                && pipeline.stages() > 1;
    }

    /** In which form boundary tensors travel: as halves in fp16, unless another codec is chosen. */
    public ChannelCodecs codecs() {
        boolean halves = device.precision() == DeviceSection.Precision.FP16;
        return halves && dataPlane.codec().equals(Optional.of(DataPlaneSection.Codec.NONE))
                ? withCodec(DataPlaneSection.Codec.FP16).dataPlane.codecs()
                : dataPlane.codecs();
    }

    /**
     * Whether both ops of a pair may run at a time, if stages can. A GPU runs one at a time,
     * outputs that travel coded share one tensor, and so do ops that drop something or that have
     * frozen weights.
     */
    public boolean pairsAtOnce() {
        return schedule.pairsAtOnce()
                && !device.kind().isCuda()
                && model.dropout() == 0
                && fineTune.method() == FineTuneSection.Method.FULL
                && codecs().equals(ChannelCodecs.NONE);
    }

    /** This configuration with another codec. */
    public RunConfig withCodec(DataPlaneSection.Codec codec) {
        return Keys.assemble(
                key ->
                        key.path().equals("data-plane.codec")
                                ? Optional.of(codec)
                                : key.valueIn(this),
                fault);
    }

    /**
     * This configuration where some blocks run again and the activations of some stages leave the
     * device.
     *
     * @param blocks and {@code offloaded} stages, counted over the whole model
     */
    public RunConfig withActivations(List<Integer> blocks, List<Integer> offloaded) {
        return Keys.assemble(
                key ->
                        switch (key.path()) {
                            case "schedule.activations" -> ScheduleSection.Activations.AS_SET;
                            case "schedule.recompute" ->
                                    blocks.isEmpty()
                                            ? Recompute.Rule.NONE
                                            : new Recompute.Given(blocks);
                            case "schedule.offload" ->
                                    offloaded.isEmpty()
                                            ? Offload.Rule.NONE
                                            : new Offload.Given(offloaded);
                            default -> key.valueIn(this);
                        },
                fault);
    }

    /** Rows that a rank has of each slice of a micro-batch. */
    public List<Integer> rowsOfUnits(List<Integer> sliceLengths) {
        return sliceLengths.stream()
                .map(length -> batch.sequencesPerMicroBatch() * length / parallel.context())
                .toList();
    }

    /**
     * This configuration as HOCON text with every key written out, in the order of declaration.
     * Loading the text gives a configuration equal to this one.
     */
    public String resolved() {
        return ResolvedText.of(this);
    }

    /** The same without some keys. */
    public String resolvedWithout(Set<String> keys) {
        return ResolvedText.of(this, key -> !keys.contains(key.path()));
    }
}
