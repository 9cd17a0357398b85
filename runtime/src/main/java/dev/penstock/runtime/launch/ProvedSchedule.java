package dev.penstock.runtime.launch;

import dev.penstock.runtime.config.order.ConfiguredSchedule;
import dev.penstock.runtime.config.order.ScheduleFaults;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.model.shape.StageBudget;
import dev.penstock.schedules.ir.PassKind;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.simulate.MemoryProfile;
import dev.penstock.schedules.simulate.StagePeak;
import dev.penstock.schedules.validate.Conditions;
import dev.penstock.schedules.validate.ScheduleValidator;
import java.util.ArrayList;
import java.util.List;

/**
 * The order of a run, lowered and proved, with what follows from the proof.
 *
 * @param training what a training step runs
 * @param evaluation its forwards alone
 * @param inFlight capacity of every channel, enough for both
 * @param conditions for which the training step was proved
 */
public record ProvedSchedule(
        Schedule training, Schedule evaluation, InFlight inFlight, Conditions conditions) {

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
        return new ProvedSchedule(training, evaluation, inFlight, conditions);
    }

    /** What is run, by kind of pass. */
    public List<Schedule> passes() {
        return List.of(training, evaluation);
    }

    /** Tokens of each slice of a sequence. */
    public List<Integer> sliceTokens() {
        return training.shape().sliceLengths();
    }

    /** What every stage must be able to hold, for training and evaluation. */
    List<StageBudget> budgets() {
        List<StagePeak> train = MemoryProfile.of(training, PassKind.TRAINING).stages();
        List<StagePeak> evaluate = MemoryProfile.of(evaluation, PassKind.FORWARD_ONLY).stages();
        List<StageBudget> budgets = new ArrayList<>();
        for (int stage = 0; stage < training.shape().stages(); stage++) {
            StagePeak first = peak(train, stage);
            StagePeak second = peak(evaluate, stage);
            List<Integer> perSlice = new ArrayList<>();
            for (int slice = 0; slice < training.shape().slices(); slice++) {
                perSlice.add(
                        Math.max(
                                first.peakUnitsPerSlice().get(slice),
                                second.peakUnitsPerSlice().get(slice)));
            }
            budgets.add(
                    new StageBudget(
                            Math.max(first.peakUnits(), second.peakUnits()),
                            perSlice,
                            Math.max(first.peakMicroBatches(), second.peakMicroBatches()),
                            first.peakBackwardMicroBatches(),
                            first.peakAwaitingWeight()));
        }
        return budgets;
    }

    private static StagePeak peak(List<StagePeak> peaks, int stage) {
        return peaks.stream().filter(peak -> peak.stage() == stage).findFirst().orElseThrow();
    }
}
