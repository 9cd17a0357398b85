package dev.penstock.actors.spi;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.schedules.ir.Schedule;
import java.util.Map;

/**
 * Everything about a run that all its processes must agree on, built by each of them from the same
 * configuration. The hash is compared before a rank is hosted.
 *
 * @param runId unique for this run, for people and file names
 * @param hash over the resolved configuration and both programs
 * @param training the lowered, proved schedule of a training step
 * @param evaluation the lowered, proved forward-only schedule
 * @param inFlight the proved capacity of every channel between ranks, in tensors
 * @param mirrors whether every rank's state is kept a second time by another rank
 */
public record RunPlan(
        String runId,
        String hash,
        Schedule training,
        Schedule evaluation,
        Map<ChannelKey, Integer> inFlight,
        RunSteps steps,
        Timeouts timeouts,
        boolean mirrors) {
    public RunPlan {
        inFlight = Map.copyOf(inFlight);
    }

    public int ranks() {
        return training.shape().ranks();
    }

    /** The program that a pass of this kind follows. */
    public Schedule schedule(StepKind kind) {
        return switch (kind) {
            case TRAIN -> training;
            case EVALUATE -> evaluation;
        };
    }
}
