package dev.penstock.runtime.model;

import com.sun.management.ThreadMXBean;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.Precision;
import dev.penstock.runtime.model.shape.StageBudget;
import dev.penstock.runtime.model.stage.GptStage;
import dev.penstock.runtime.model.stage.GptStageFactory;
import dev.penstock.schedules.ir.WorkUnit;
import java.lang.management.ManagementFactory;
import java.util.List;

/**
 * Prints how many bytes of heap an op of a stage allocates once it is compiled, on all threads
 * together: the least of many rounds, since what else a JVM does only adds. To be run in a JVM of
 * its own, where nobody else allocates.
 */
final class StageAllocations {
    private static final int MICRO_BATCHES = 2;
    private static final int LEAST_ROUNDS = 50;
    private static final long PATIENCE_NANOS = 60_000_000_000L;

    private StageAllocations() {}

    /**
     * Prints the bytes per op.
     *
     * @param arguments a precision, and bytes per op at which warming up may end
     */
    public static void main(String[] arguments) {
        Precision precision = Precision.valueOf(arguments[0]);
        long few = Long.parseLong(arguments[1]);
        // neither the vocabulary nor the sequences are whole vectors or blocks
        ModelShape shape = ModelShape.gpt2(301, 72, 64, 2, 4, true);
        BatchShape batch = new BatchShape(2, MICRO_BATCHES, List.of(72), 16);
        GptSettings settings = TinyRuns.settings(shape, 1, batch, precision);
        var factory =
                new GptStageFactory(
                        settings,
                        List.of(new StageBudget(1, List.of(1), 1, 1)),
                        TinyRuns.tokens(shape.vocabulary()),
                        ParameterSource.none());
        try (Device device = Devices.open(DeviceSettings.DEFAULTS.withThreads(2));
                GptStage stage = factory.create(0, RankPlace.single(0), device)) {
            System.out.println(leastBytesPerOp(stage, few));
        }
    }

    private static long leastBytesPerOp(GptStage stage, long few) {
        long giveUp = System.nanoTime() + PATIENCE_NANOS;
        long least = Long.MAX_VALUE;
        for (int step = 1;
                (least > few && System.nanoTime() < giveUp) || step < LEAST_ROUNDS;
                step++) {
            stage.beginStep(StepKind.TRAIN, step);
            least = Math.min(least, bytesPerOp(stage));
            stage.finishStep();
            stage.update(step, 1);
        }
        return least;
    }

    private static long bytesPerOp(GptStage stage) {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long before = threads.getTotalThreadAllocatedBytes();
        for (int microBatch = 0; microBatch < MICRO_BATCHES; microBatch++) {
            WorkUnit unit = new WorkUnit(0, microBatch, 0);
            stage.forward(unit, null, null);
            stage.backward(unit, null, null, null);
        }
        return (threads.getTotalThreadAllocatedBytes() - before) / (2 * MICRO_BATCHES);
    }
}
