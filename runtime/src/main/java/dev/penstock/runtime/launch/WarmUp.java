package dev.penstock.runtime.launch;

import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.cuda.device.Device;
import dev.penstock.runtime.config.run.DeviceSection;
import dev.penstock.runtime.launch.devices.ConfiguredDevices;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.AdamWSettings;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.GptSettings;
import dev.penstock.runtime.model.shape.LearningRate;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.StageBudget;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.runtime.model.stage.GptStageFactory;
import dev.penstock.schedules.ir.WorkUnit;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Trains a tiny model that nobody uses, on a thread of its own, so that kernels and stages are
 * compiled by the time this process has its rank: a run that waits for a process in a dead one's
 * place waits for its first step too. Ends by itself when nothing is left to compile.
 */
final class WarmUp implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(WarmUp.class);

    /** As many as it takes to have every kernel compiled. */
    static final int STEPS = 300;

    /** A machine that is so slow has better things to do. */
    private static final long MOST_NANOS = TimeUnit.SECONDS.toNanos(6);

    private static final ModelShape SHAPE = ModelShape.gpt2(256, 64, 64, 1, 2, true);
    private static final int MICRO_BATCHES = 2;

    private final DeviceSection section;
    private final Thread thread;
    private volatile boolean ends;
    private volatile int steps;

    private WarmUp(DeviceSection section) {
        this.section = section;
        this.thread = Thread.ofPlatform().daemon().name("warm-up").unstarted(this::run);
    }

    /** Begins, where ranks compute on the CPU: kernels of a GPU are compiled when it is opened. */
    static WarmUp start(DeviceSection section) {
        var warmUp = new WarmUp(section);
        if (!section.kind().isCuda()) {
            warmUp.thread.start();
        }
        return warmUp;
    }

    private void run() {
        int oneThread = Integer.MAX_VALUE; // ranks that share the cores: others have work to do
        try (Device device = ConfiguredDevices.of(section, oneThread).open(0)) {
            train(device);
        } catch (RuntimeException e) {
            LOG.info("this process comes to its rank cold", e);
        }
    }

    private void train(Device device) {
        BatchShape batch =
                BatchShape.unsliced(1, MICRO_BATCHES, SHAPE.context(), section.reductionBlock());
        var optimizer = new AdamWSettings(LearningRate.constant(1e-3), 0.9, 0.95, 1e-8, 0.1, false);
        var settings =
                GptSettings.of(
                        SHAPE,
                        StagePartition.byFlops(SHAPE, 1),
                        batch,
                        ConfiguredModel.precision(section),
                        optimizer,
                        1);
        var stages =
                new GptStageFactory(
                        settings,
                        List.of(StageBudget.everything(batch)),
                        (_, _, _, tokens) -> Arrays.setAll(tokens, i -> i % SHAPE.vocabulary()),
                        ParameterSource.none());
        long deadline = System.nanoTime() + MOST_NANOS;
        try (var stage = stages.create(0, RankPlace.single(0), device)) {
            for (int step = 1; step <= STEPS && !ends && System.nanoTime() < deadline; step++) {
                stage.beginStep(StepKind.TRAIN, step);
                for (int microBatch = 0; microBatch < MICRO_BATCHES; microBatch++) {
                    var unit = new WorkUnit(0, microBatch, 0);
                    stage.forward(unit, null, null);
                    stage.backward(unit, null, null, null);
                }
                stage.finishStep();
                stage.update(step, 1);
                steps = step;
            }
        }
    }

    /** Ends it within a step; does not wait. */
    @Override
    public void close() {
        ends = true;
    }

    /** Steps that it did. */
    int steps() {
        return steps;
    }

    /** Waits for its end; false if it has not ended by then. */
    boolean join(Duration patience) throws InterruptedException {
        return thread.join(patience);
    }
}
