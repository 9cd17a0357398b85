package dev.penstock.runtime.launch;

import dev.penstock.runtime.config.order.ConfiguredSchedule;
import dev.penstock.runtime.config.order.ScheduleFaults;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.model.shape.StageBudget;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.simulate.MemoryProfile;
import dev.penstock.schedules.simulate.StagePeak;
import dev.penstock.schedules.validate.Conditions;
import dev.penstock.schedules.validate.ScheduleValidator;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.ToIntFunction;
import java.util.stream.IntStream;

/**
 * The order of a run, lowered and proved, with what follows from the proof.
 *
 * @param training what a training step runs
 * @param evaluation its forwards alone
 * @param inFlight capacity of every channel, enough for both
 * @param conditions for which the training step was proved
 * @param budgets what every stage must be able to hold, for training and evaluation; where a wired
 *     order is generated, for whatever wiring
 */
public record ProvedSchedule(
        Schedule training,
        Schedule evaluation,
        InFlight inFlight,
        Conditions conditions,
        List<StageBudget> budgets) {
    public ProvedSchedule {
        budgets = List.copyOf(budgets);
    }

    /** One tensor more than costs of equal ops would ask for: real ops are not equal. */
    private static final int SLACK = 2;

    /**
     * Proves the order that a configuration asks for.
     *
     * @throws ConfigException if there is no such order or the judge refuses it, with everything
     *     that keeps it from running
     */
    static ProvedSchedule of(LoadedConfig loaded) {
        return of(loaded, ConfiguredSchedule.of(loaded));
    }

    /**
     * Same as {@link #of(LoadedConfig)}.
     *
     * @param configured the order that the configuration asks for
     */
    static ProvedSchedule of(LoadedConfig loaded, ConfiguredSchedule configured) {
        List<Problem> faults = ScheduleFaults.of(loaded, configured);
        if (!faults.isEmpty()) {
            throw new ConfigException(faults);
        }
        Schedule training = configured.training(loaded);
        Schedule evaluation = configured.evaluation(loaded);
        InFlight inFlight =
                loaded.config()
                        .dataPlane()
                        .inFlight()
                        .map(InFlight::uniform)
                        .orElseGet(
                                () ->
                                        InFlight.auto(training)
                                                .max(InFlight.auto(evaluation))
                                                .max(InFlight.uniform(SLACK)));
        Conditions conditions = configured.conditions(loaded).with(inFlight);
        ScheduleValidator.validate(training, conditions).orThrow();
        ScheduleValidator.validate(evaluation, Conditions.forwardOnly().with(inFlight)).orThrow();
        List<StageBudget> needed = needed(training, evaluation);
        return new ProvedSchedule(
                training,
                evaluation,
                inFlight,
                conditions,
                configured
                        .caps(loaded)
                        .map(caps -> anyWiring(training.shape(), needed, caps))
                        .orElse(needed));
    }

    /** What is run, by kind of pass. */
    public List<Schedule> passes() {
        return List.of(training, evaluation);
    }

    /** Tokens of each slice of a sequence. */
    public List<Integer> sliceTokens() {
        return training.shape().sliceLengths();
    }

    private static List<StageBudget> needed(Schedule training, Schedule evaluation) {
        List<StagePeak> peaks = new ArrayList<>();
        peaks.addAll(MemoryProfile.of(training, PassKind.TRAINING).stages());
        peaks.addAll(MemoryProfile.of(evaluation, PassKind.FORWARD_ONLY).stages());
        return IntStream.range(0, training.shape().stages())
                .mapToObj(
                        stage ->
                                budget(
                                        training.shape().slices(),
                                        peaks.stream().filter(p -> p.stage() == stage).toList()))
                .toList();
    }

    /** The most of a stage's ranks, in passes of both kinds. */
    private static StageBudget budget(int slices, List<StagePeak> peaks) {
        return new StageBudget(
                most(peaks, StagePeak::peakUnits),
                IntStream.range(0, slices)
                        .mapToObj(slice -> most(peaks, peak -> peak.peakUnitsPerSlice().get(slice)))
                        .toList(),
                most(peaks, StagePeak::peakMicroBatches),
                most(peaks, StagePeak::peakBackwardMicroBatches),
                most(peaks, StagePeak::peakAwaitingWeight),
                most(peaks, StagePeak::peakAway));
    }

    private static int most(List<StagePeak> peaks, ToIntFunction<StagePeak> of) {
        return peaks.stream().mapToInt(of).max().orElseThrow();
    }

    /**
     * What a stage needs to hold as many micro-batches as it ever may.
     *
     * @param needed for this wiring
     * @param caps of the ranks; stage s is with rank s of every replica
     */
    private static List<StageBudget> anyWiring(
            PipelineShape shape, List<StageBudget> needed, List<Integer> caps) {
        List<StageBudget> budgets = new ArrayList<>();
        for (int stage = 0; stage < needed.size(); stage++) {
            StageBudget own = needed.get(stage);
            int cap = caps.get(stage);
            if (own.microBatches() > cap) {
                throw new IllegalStateException(
                        "stage %d holds up to %d micro-batches, but expected at most %d"
                                .formatted(stage, own.microBatches(), cap));
            }
            boolean whole = !own.split() && shape.slices() == 1;
            budgets.add(
                    new StageBudget(
                            cap * shape.slices(),
                            Collections.nCopies(shape.slices(), cap),
                            cap,
                            whole || own.forwardOnly() ? own.backwardMicroBatches() : cap,
                            own.split() ? cap * shape.slices() : 0,
                            own.away() > 0 ? cap * shape.slices() : 0));
        }
        return budgets;
    }
}
