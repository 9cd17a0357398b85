package dev.penstock.runtime.config.run;

import dev.penstock.actors.collective.CollectiveLibrary;
import dev.penstock.actors.spi.RankGrid;
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

    /** How the ranks of the run divide its work. */
    public RankGrid grid() {
        return new RankGrid(
                pipeline.stages(), parallel.tensor(), parallel.context(), parallel.data());
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
        parallel.unusedNote().ifPresent(notes::add);
        notes.addAll(dataPlane.unusedNotes(pipeline.stages(), chunks()));
        dataPlane.unusedLinksNote(grid().ranks()).ifPresent(notes::add);
        notes.addAll(pipeline.unusedNotes(schedule, run.steps()));
        notes.addAll(schedule.unusedNotes(parallel.data()));
        return notes;
    }

    /** Whether the run may change its plan while it goes on. */
    public boolean adapts() {
        return pipeline.measured() || schedule.measured() || !schedule.candidates().isEmpty();
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
