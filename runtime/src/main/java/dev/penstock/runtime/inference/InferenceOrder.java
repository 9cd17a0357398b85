package dev.penstock.runtime.inference;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.FrameKind;
import dev.penstock.schedules.generate.Decoding;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.InsertTransfers;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.validate.Conditions;
import dev.penstock.schedules.validate.ScheduleValidator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The order in which stages feed texts, lowered and proved for channels of a few tensors. */
final class InferenceOrder {
    /** One tensor in flight while the receiver computes with another. */
    private static final int IN_FLIGHT = 2;

    private InferenceOrder() {}

    /**
     * Returns the order with one stage per rank.
     *
     * @throws dev.penstock.schedules.validate.InvalidScheduleException if the validator rejects it
     */
    static Schedule of(int stages, Texts texts) {
        return of(stages, texts.microBatches(), texts.sliceRows());
    }

    /**
     * As of texts.
     *
     * @param sliceRows rows of each slice, at most
     */
    static Schedule of(int stages, int microBatches, List<Integer> sliceRows) {
        var shape = new PipelineShape(stages, 1, microBatches, sliceRows);
        Schedule order = InsertTransfers.into(Decoding.schedule(shape));
        ScheduleValidator.validate(
                        order, Conditions.forwardOnly().with(InFlight.uniform(IN_FLIGHT)))
                .orThrow();
        return order;
    }

    /**
     * Returns the order of ranks in V placement, where the first and the last stage are on one
     * rank.
     *
     * @throws dev.penstock.schedules.validate.InvalidScheduleException if the validator rejects it
     */
    static Schedule thereAndBack(int ranks, int microBatches, List<Integer> sliceRows) {
        var shape = new PipelineShape(ranks, 2, microBatches, sliceRows);
        Schedule order = InsertTransfers.into(Decoding.thereAndBack(shape));
        ScheduleValidator.validate(
                        order, Conditions.forwardOnly().with(InFlight.uniform(IN_FLIGHT)))
                .orThrow();
        return order;
    }

    /** Returns the capacities of the channels between the ranks of an order. */
    static Map<ChannelKey, Integer> inFlight(Schedule order) {
        Map<ChannelKey, Integer> capacities = new HashMap<>();
        for (int stage = 1; stage < order.shape().stages(); stage++) {
            if (order.placement().crossesBefore(stage)) {
                putBoundary(capacities, stage);
            }
        }
        return capacities;
    }

    /**
     * Returns the capacities of the channels; those of gradients, which carry nothing, are as small
     * as possible.
     */
    static Map<ChannelKey, Integer> inFlight(int stages) {
        Map<ChannelKey, Integer> capacities = new HashMap<>();
        for (int stage = 1; stage < stages; stage++) {
            putBoundary(capacities, stage);
        }
        return capacities;
    }

    private static void putBoundary(Map<ChannelKey, Integer> capacities, int stage) {
        capacities.put(new ChannelKey(FrameKind.ACTIVATION, stage - 1, stage), IN_FLIGHT);
        capacities.put(new ChannelKey(FrameKind.GRADIENT, stage, stage - 1), 1);
    }
}
