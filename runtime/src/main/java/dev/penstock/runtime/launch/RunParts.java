package dev.penstock.runtime.launch;

import com.sun.management.OperatingSystemMXBean;
import dev.penstock.actors.spi.StepTraffic;
import dev.penstock.runtime.config.order.ConfiguredSchedule;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.DataSection;
import dev.penstock.runtime.config.run.DraftConfig;
import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.config.run.ScheduleSection;
import dev.penstock.runtime.data.TrainingData;
import dev.penstock.runtime.lengths.UnequalSteps;
import dev.penstock.runtime.links.CodecChoice;
import dev.penstock.runtime.memory.ActivationChoice;
import dev.penstock.runtime.memory.ActivationFit;
import dev.penstock.runtime.memory.MemoryProof;
import dev.penstock.runtime.memory.Rates;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.tokenizer.Tokenizer;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.stream.IntStream;

/**
 * What a run is made of, all of it checked: nothing is started and no directory is needed yet.
 *
 * @param start where the run begins; open, closed by the assembly that takes these parts
 * @param codec what was chosen for the links, where the configuration left it open
 * @param activations what was chosen to fit into memory, where it was to be chosen
 * @param machineBytes memory that all ranks share; empty: they live somewhere else
 */
public record RunParts(
        RunConfig config,
        Tokenizer tokenizer,
        TrainingData data,
        ProvedSchedule schedule,
        GptSettings model,
        StartingPoint start,
        Optional<CodecChoice> codec,
        Optional<ActivationChoice> activations,
        OptionalLong machineBytes) {
    /** Steps whose lengths stand for all. */
    private static final int SIMULATED_STEPS = 8;

    /**
     * Reads data, order and weights and checks that all fits together.
     *
     * @param others problems found elsewhere, told with the ones found here
     * @throws ConfigException with all problems at once
     */
    public static RunParts prepare(DraftConfig draft, RunStart start, List<Problem> others) {
        return new PartChecks(draft, start, others, OptionalLong.empty()).partsOrThrow();
    }

    /**
     * The same for a run all of whose ranks will live on this machine: what they will hold fits
     * into its memory, or the part of it that this process may use.
     */
    public static RunParts prepareHere(DraftConfig draft, RunStart start, List<Problem> others) {
        return new PartChecks(draft, start, others, OptionalLong.of(memoryOfThisMachine()))
                .partsOrThrow();
    }

    /**
     * The parts of the same run with other settings, which data, model and start do not depend on.
     *
     * @throws ConfigException if the judge refuses its order then
     */
    RunParts with(List<String> settings) {
        LoadedConfig loaded = loaded(settings);
        ProvedSchedule proved = ProvedSchedule.of(loaded);
        return new RunParts(
                loaded.config(),
                tokenizer,
                data,
                proved,
                ConfiguredModel.settings(loaded.config(), proved),
                start,
                codec,
                activations,
                machineBytes);
    }

    /**
     * An order that may take the place of this run's while it goes on: it has the same stages, on
     * the same ranks but for those that are absent, and the same slices.
     *
     * @param costs as {@code schedule.costs} has them
     * @param absent ranks of a wired order that take no part
     * @throws ConfigException if there is none, or the judge refuses it
     */
    ProvedSchedule candidate(String kind, List<Integer> costs, List<Integer> absent) {
        LoadedConfig loaded =
                loaded(
                        List.of(
                                "schedule.kind=" + kind,
                                "schedule.costs=" + costs,
                                "schedule.without=" + absent));
        ProvedSchedule proved = ProvedSchedule.of(loaded);
        Schedule here = schedule.training();
        Schedule there = proved.training();
        boolean sameStages =
                loaded.config().schedule().isWiredKind()
                        || here.placement().equals(there.placement());
        if (sameStages && here.shape().equals(there.shape())) {
            return proved;
        }
        throw new ConfigException(
                List.of(
                        loaded.problem(
                                "schedule.candidates",
                                "orders of " + form(here),
                                "one of " + form(there),
                                "leave %s out".formatted(kind))));
    }

    private static String form(Schedule order) {
        PipelineShape shape = order.shape();
        return "stages %s on the ranks, sequences in %s"
                .formatted(
                        IntStream.range(0, shape.ranks())
                                .mapToObj(order.placement()::stagesOf)
                                .toList(),
                        shape.slices() == 1 ? "one piece" : "slices " + shape.sliceLengths());
    }

    /** What the configuration says and has no effect, for people. */
    public List<String> notes() {
        List<String> notes = new ArrayList<>(config.unusedNotes());
        config.swapNote(model.partition(), model.shape()).ifPresent(notes::add);
        long read = (long) config.run().steps() * config.batch().sequences();
        if (config.dataPlane().sendsDeltas() && read <= data.rows()) {
            notes.add(
                    "data-plane.delta-rows = %d has no effect: run.steps = %d read %,d of %,d rows, and none a second time"
                            .formatted(
                                    config.dataPlane().deltaRows(),
                                    config.run().steps(),
                                    read,
                                    data.rows()));
        }
        config.schedule().candidates().stream()
                .distinct()
                .filter(kind -> kind != config.schedule().kind())
                .forEach(kind -> leftOut(kind).ifPresent(notes::add));
        return notes;
    }

    private Optional<String> leftOut(ScheduleSection.Kind kind) {
        try {
            var _ = candidate(kind.word(), List.of(), List.of());
            return Optional.empty();
        } catch (ConfigException e) {
            Problem first = e.problems().getFirst();
            return Optional.of(
                    "schedule.candidates: %s is left out: expected %s, got %s"
                            .formatted(kind.word(), first.expected(), first.got()));
        }
    }

    private LoadedConfig loaded(List<String> settings) {
        return ConfigLoader.loadOfRun(config.run().name(), config.resolved(), settings);
    }

    /** Bytes of memory that this process may use. */
    public static long memoryOfThisMachine() {
        return ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class)
                .getTotalMemorySize();
    }

    /**
     * Bytes that each rank will send to others in a training step, by use, on one host where nobody
     * dies; entry r is rank r's.
     */
    public List<StepTraffic> plannedTraffic() {
        return PlannedTraffic.of(config, schedule, model).ofAllRanks();
    }

    /**
     * The same of a configuration whose data nobody looks at.
     *
     * @param order that it asks for
     * @throws ConfigException if the judge refuses it
     */
    public static List<StepTraffic> plannedTraffic(LoadedConfig loaded, ConfiguredSchedule order) {
        ProvedSchedule schedule = ProvedSchedule.of(loaded, order);
        GptSettings sizes = ConfiguredModel.sizes(loaded.config(), schedule);
        return PlannedTraffic.of(loaded.config(), schedule, sizes).ofAllRanks();
    }

    /**
     * Proves what the ranks of a configuration hold, whose data nobody looks at.
     *
     * @throws ConfigException if the judge refuses its order; what is too large is not refused
     */
    public static MemoryProof proof(LoadedConfig loaded) {
        ProvedSchedule proved = ProvedSchedule.of(loaded);
        GptSettings sizes = ConfiguredModel.sizes(loaded.config(), proved);
        return new MemoryProof(
                loaded.config(),
                proved.training(),
                proved.inFlight(),
                sizes,
                () ->
                        new JudgedMemory(
                                        loaded,
                                        proved,
                                        PlannedMemory.of(loaded.config(), sizes, proved, false))
                                .held());
    }

    /** What becomes of activations where that is to be chosen; empty where it is set. */
    static Optional<ActivationChoice> activations(LoadedConfig loaded) {
        RunConfig config = loaded.config();
        return config.device()
                .memoryLimit()
                .filter(_ -> config.schedule().activations() == ScheduleSection.Activations.FIT)
                .map(
                        limit ->
                                ActivationFit.of(
                                        loaded,
                                        RunParts::proof,
                                        Rates.nominal(config.device()),
                                        limit.bytes()));
    }

    /**
     * A configuration in which the codec of its links is decided, and what becomes of activations,
     * where these are to be chosen: as the simulated step says, by this configuration alone.
     *
     * @param order that it asks for
     * @throws ConfigException if the judge refuses it
     */
    public static LoadedConfig decided(LoadedConfig loaded, ConfiguredSchedule order) {
        LoadedConfig coded =
                codec(loaded, order).map(chosen -> loaded.withCodec(chosen.codec())).orElse(loaded);
        return activations(coded).map(chosen -> chosen.in(coded)).orElse(coded);
    }

    /**
     * Same as {@link #decided(LoadedConfig, ConfiguredSchedule)}; as it is if it would be refused.
     */
    public static LoadedConfig decided(LoadedConfig loaded) {
        try {
            return decided(loaded, ConfiguredSchedule.of(loaded));
        } catch (ConfigException e) {
            return loaded;
        }
    }

    /** The codec that {@link #decided} takes, and why; empty if nothing is open. */
    static Optional<CodecChoice> codec(LoadedConfig loaded, ConfiguredSchedule order) {
        if (loaded.config().dataPlane().codec().isPresent()) {
            return Optional.empty();
        }
        ProvedSchedule schedule = ProvedSchedule.of(loaded, order);
        return Optional.of(
                CodecChoice.ofRun(
                        loaded.config(),
                        schedule.training(),
                        schedule.inFlight(),
                        ConfiguredModel.sizes(loaded.config(), schedule)));
    }

    /**
     * The first steps of a configuration whose micro-batches are unequal; empty if they are equal.
     *
     * @param order that it asks for
     * @throws ConfigException if the judge refuses it or the data cannot be read
     */
    public static Optional<UnequalSteps> unequalSteps(
            LoadedConfig loaded, ConfiguredSchedule order) {
        if (loaded.config().data().packing() != DataSection.Packing.LENGTHS) {
            return Optional.empty();
        }
        ProvedSchedule schedule = ProvedSchedule.of(loaded, order);
        TrainingData data = ConfiguredData.open(loaded.asDraft(), Optional.of(schedule), null);
        GptSettings sizes = ConfiguredModel.sizes(loaded.config(), schedule);
        return unequalSteps(data, sizes);
    }

    static Optional<UnequalSteps> unequalSteps(TrainingData data, GptSettings sizes) {
        return data.unequal() && data.trainingTokens() > 0
                ? Optional.of(UnequalSteps.of(data, sizes, SIMULATED_STEPS))
                : Optional.empty();
    }

    /**
     * What {@link #prepare} would throw.
     *
     * @param others at least one, if all else is well
     */
    public static ConfigException refusal(DraftConfig draft, RunStart start, List<Problem> others) {
        return new PartChecks(draft, start, others, OptionalLong.empty()).refusal();
    }
}
