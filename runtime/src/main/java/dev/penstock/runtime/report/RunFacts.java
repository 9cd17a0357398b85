package dev.penstock.runtime.report;

import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.StepTraffic;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.simulate.CostModel;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.function.Supplier;

/**
 * What is known about a run before it starts.
 *
 * @param name as configured
 * @param configuration the resolved configuration as text
 * @param schedule the lowered training program that every rank runs
 * @param grid of all ranks; the schedule is that of each of its pipelines
 * @param steps the step that the run ends with
 * @param tokensPerStep tokens that one step trains on
 * @param parameters of the model, shared ones counted once
 * @param memory entry r is what rank r is to hold; empty where not planned
 * @param traffic entry r is what rank r is to send to others in a training step; empty where not
 *     predicted
 * @param faults what became of the faults on purpose, asked for when the run has ended
 * @param links adds the time of tensors under way to the costs of a program's computations
 * @param environment further facts in the order in which they are shown, such as the host and the
 *     version
 */
public record RunFacts(
        String name,
        String configuration,
        Schedule schedule,
        RankGrid grid,
        long steps,
        long tokensPerStep,
        long parameters,
        List<MemoryPlan> memory,
        List<StepTraffic> traffic,
        Supplier<List<FaultOutcome>> faults,
        BiFunction<CostModel, Schedule, CostModel> links,
        Map<String, String> environment) {
    public RunFacts {
        memory = List.copyOf(memory);
        traffic = List.copyOf(traffic);
        environment = Collections.unmodifiableMap(new LinkedHashMap<>(environment));
    }

    /** Returns whether micro-batches are as long as the documents in them ask for. */
    boolean mixedLengths() {
        return configuration.lines().anyMatch(line -> line.strip().equals("packing = lengths"));
    }
}
