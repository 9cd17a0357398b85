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
import dev.penstock.runtime.data.TrainingData;
import dev.penstock.runtime.lengths.UnequalSteps;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * What a run is made of, all of it checked: nothing is started and no directory is needed yet.
 *
 * @param start where the run begins; open, closed by the assembly that takes these parts
 */
public record RunParts(
        RunConfig config,
        Tokenizer tokenizer,
        TrainingData data,
        ProvedSchedule schedule,
        GptSettings model,
        StartingPoint start) {
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
                start);
    }

    /**
     * The order of the same run with other settings.
     *
     * @throws ConfigException if there is none, or the judge refuses it
     */
    ProvedSchedule schedule(List<String> settings) {
        return ProvedSchedule.of(loaded(settings));
    }

    private LoadedConfig loaded(List<String> settings) {
        return ConfigLoader.loadOfRun(config.run().name(), config.resolved(), settings);
    }

    private static long memoryOfThisMachine() {
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
