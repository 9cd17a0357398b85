package dev.penstock.runtime.planning;

import dev.penstock.actors.dataplane.ChannelCodecs;
import dev.penstock.runtime.config.run.DataPlaneSection.Codec;
import dev.penstock.runtime.links.CodecChoice;
import dev.penstock.runtime.links.LinkCosts;
import dev.penstock.schedules.generate.Generators;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.Lowering;
import dev.penstock.schedules.lower.LoweringOptions;
import dev.penstock.schedules.plan.Plan;
import dev.penstock.schedules.plan.work.HardwareCosts;
import dev.penstock.schedules.plan.work.PlanChoice;
import dev.penstock.schedules.plan.work.PlanRequest;
import dev.penstock.schedules.simulate.CostModel;
import dev.penstock.schedules.simulate.InFlight;
import dev.penstock.schedules.simulate.ScheduleSimulator;
import java.util.Optional;
import java.util.function.ToLongFunction;

/** The codec that makes the step of a plan fastest. */
public final class PlannedCodec {
    private PlannedCodec() {}

    /** Explains in a line which codec that is; empty where no activations travel. */
    public static Optional<String> of(PlanRequest request, Plan plan) {
        PlanChoice choice = plan.choice();
        if (choice.layout().pipeline() == 1) {
            return Optional.empty();
        }
        Schedule order = order(choice);
        InFlight inFlight = InFlight.auto(order);
        HardwareCosts costs =
                HardwareCosts.of(request, choice, plan.partition(), order.placement());
        int sequences = request.batch() / choice.layout().data() / choice.microBatches();
        int[] rows = choice.sliceLengths().stream().mapToInt(n -> n * sequences).toArray();
        int width = request.model().width();
        ToLongFunction<Codec> pipeline =
                codec ->
                        ScheduleSimulator.simulate(
                                        order,
                                        coded(costs, order, codecs(codec), width, rows),
                                        inFlight)
                                .makespanNanos();
        long rest = plan.stepNanos() - pipeline.applyAsLong(Codec.NONE);
        CodecChoice chosen = CodecChoice.of(codec -> rest + pipeline.applyAsLong(codec));
        return Optional.of(
                "data-plane.codec = %s%s."
                        .formatted(
                                chosen.reason(Optional.empty()),
                                chosen.codec() == Codec.NONE
                                        ? ""
                                        : "; plans are timed without a codec"));
    }

    private static ChannelCodecs codecs(Codec codec) {
        return new ChannelCodecs(codec.ofWholeRows(), codec.ofWholeRows(), 0, false, 0);
    }

    private static CostModel coded(
            HardwareCosts costs, Schedule order, ChannelCodecs codecs, int width, int[] rows) {
        return LinkCosts.coded(
                costs.coded(channel -> HardwareModel.bytesOfToken(codecs, channel, width)),
                order,
                codecs,
                width,
                rows);
    }

    private static Schedule order(PlanChoice choice) {
        var shape =
                new PipelineShape(
                        choice.layout().pipeline(),
                        choice.chunks(),
                        choice.microBatches(),
                        choice.sliceLengths());
        LoweringOptions options = LoweringOptions.plain();
        return Lowering.lower(
                Generators.generate(choice.kind(), shape),
                choice.recompute() ? options.withRecompute() : options);
    }
}
