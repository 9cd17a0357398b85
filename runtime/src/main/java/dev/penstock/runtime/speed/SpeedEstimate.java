package dev.penstock.runtime.speed;

import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.planning.PlannedModel;
import dev.penstock.schedules.plan.Plan;
import dev.penstock.schedules.plan.Planner;
import dev.penstock.schedules.plan.work.DeviceSpec;
import dev.penstock.schedules.plan.work.Hardware;
import dev.penstock.schedules.plan.work.Layout;
import dev.penstock.schedules.plan.work.Link;
import dev.penstock.schedules.plan.work.NodeGroup;
import dev.penstock.schedules.plan.work.PlanChoice;
import dev.penstock.schedules.plan.work.PlanRequest;
import dev.penstock.schedules.plan.work.TrainingBytes;
import dev.penstock.schedules.plan.work.ZeroStage;
import java.util.List;
import java.util.Optional;

/**
 * What a sample configuration may reach with the measured rates, by the planner's cost model.
 *
 * @param model the configuration's name
 * @param precision of its products
 * @param stages into which it is divided
 * @param stepNanos a whole step
 * @param tokensPerSecond tokens of a step over its time
 */
public record SpeedEstimate(
        String model, String precision, int stages, long stepNanos, double tokensPerSecond) {
    /** Samples whose speed people ask for. */
    enum Sample {
        /** sample-configs/quickstart.conf. */
        QUICKSTART("quickstart", 256, 256, 256, 4, 4, 8),

        /** sample-configs/gpt2-124m.conf. */
        GPT2("gpt2-124m", 50_257, 1_024, 768, 12, 12, 16);

        private final String title;
        private final int vocabulary;
        private final int context;
        private final int width;
        private final int layers;
        private final int heads;
        private final int sequences;

        Sample(
                String title,
                int vocabulary,
                int context,
                int width,
                int layers,
                int heads,
                int sequences) {
            this.title = title;
            this.vocabulary = vocabulary;
            this.context = context;
            this.width = width;
            this.layers = layers;
            this.heads = heads;
            this.sequences = sequences;
        }

        String title() {
            return title;
        }

        ModelShape model() {
            return ModelShape.gpt2(vocabulary, context, width, layers, heads, true);
        }

        /** Sequences of a step, each a micro-batch. */
        int sequences() {
            return sequences;
        }

        /** Bytes of a tensor at the boundary of two stages. */
        int boundaryBytes() {
            return Float.BYTES * context * width;
        }
    }

    /**
     * Estimates a sample.
     *
     * @param hardware a device for each stage
     * @return nothing if it does not fit into the devices' memory
     */
    static Optional<SpeedEstimate> of(
            Sample sample, String precision, TrainingBytes bytes, Hardware hardware) {
        PlanRequest request = request(sample, bytes, hardware);
        return Planner.predict(request, choice(sample, hardware))
                .map(plan -> of(sample, precision, hardware, request, plan));
    }

    private static SpeedEstimate of(
            Sample sample, String precision, Hardware hardware, PlanRequest request, Plan plan) {
        return new SpeedEstimate(
                sample.title(),
                precision,
                hardware.devices(),
                plan.stepNanos(),
                plan.tokensPerSecond(request));
    }

    static PlanRequest request(Sample sample, TrainingBytes bytes, Hardware hardware) {
        return new PlanRequest(
                PlannedModel.of(sample.model()), bytes, hardware, sample.sequences());
    }

    static PlanChoice choice(Sample sample, Hardware hardware) {
        return new PlanChoice(
                new Layout(hardware.devices(), 1, 1),
                ZeroStage.NONE,
                "1f1b",
                1,
                sample.sequences(),
                List.of(sample.model().context()),
                false);
    }

    /**
     * A machine whose rates are divided among devices.
     *
     * @param flops per second, of all
     * @param memoryRate bytes per second, of all
     */
    static Hardware hardware(
            int devices, long memoryBytes, double flops, double memoryRate, LinkRate link) {
        var device =
                new DeviceSpec(memoryBytes / devices, flops / devices, 1, memoryRate / devices);
        double alone = 1e9 * link.bytes() / link.bytesPerSecond();
        var way =
                new Link(
                        Math.max(0, (long) (1e3 * link.microseconds() - alone)),
                        link.bytesPerSecond());
        return new Hardware(
                "this machine",
                List.of(new NodeGroup("this machine", 1, devices, device, way)),
                way);
    }
}
