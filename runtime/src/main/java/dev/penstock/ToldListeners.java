package dev.penstock;

import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.launch.RunAssembly;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.OptionalDouble;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Hands on what a run reports, in the types of this package, on a thread that does nothing else: a
 * slow listener holds up neither the run nor its own metrics. The first that throws stops the run.
 */
final class ToldListeners {
    private static final Logger LOG = LoggerFactory.getLogger(ToldListeners.class);
    private static final Duration SAY_AGAIN = Duration.ofSeconds(10);

    /** What the run itself reported last, whatever listeners have heard of. */
    private record Loss(long step, double loss) {}

    private final List<TrainingListener> listeners;
    private final Training training;
    private final AtomicInteger untold = new AtomicInteger();
    private final ExecutorService thread =
            Executors.newSingleThreadExecutor(
                    Thread.ofPlatform().daemon().name("penstock-training-listener").factory());
    private volatile @Nullable Loss loss;
    private volatile OptionalDouble heldOutLoss = OptionalDouble.empty();
    private volatile @Nullable Throwable thrown;

    ToldListeners(List<TrainingListener> listeners, Training training) {
        this.listeners = List.copyOf(listeners);
        this.training = training;
    }

    void onBegin() {
        tell(listener -> listener.onBegin(training));
    }

    void onNote(String line) {
        tell(listener -> listener.onNote(line));
    }

    /** The training has ended, so who throws is told of at once. */
    void onEnd(TrainingEnd end) {
        tell(listener -> listener.onEnd(end));
        awaitTold();
        requireNoneThrew();
    }

    /** The loss of a step, if it is the last that was reported. */
    OptionalDouble loss(long step) {
        Loss last = loss;
        return last == null || last.step() != step
                ? OptionalDouble.empty()
                : OptionalDouble.of(last.loss());
    }

    /** The last held-out loss, if one was measured. */
    OptionalDouble heldOutLoss() {
        return heldOutLoss;
    }

    /** Throws what a listener threw. */
    private void requireNoneThrew() {
        Throwable first = thrown;
        if (first != null) {
            throw new PenstockException(List.of("a listener threw " + first), first);
        }
    }

    private void tell(Consumer<TrainingListener> what) {
        if (listeners.isEmpty()) {
            return;
        }
        untold.incrementAndGet();
        try {
            thread.execute(() -> tellNow(what));
        } catch (RejectedExecutionException e) {
            LOG.debug("an event after the end", e); // of a run that was given up
        }
    }

    private void tellNow(Consumer<TrainingListener> what) {
        try {
            if (thrown == null) {
                training.telling(() -> listeners.forEach(what));
            }
        } catch (Throwable e) { // whoever waits for the end gets it
            thrown = e;
            training.stop();
        } finally {
            untold.decrementAndGet();
        }
    }

    /**
     * Waits until listeners have heard everything, without a deadline, since nothing may be left
     * out; it says what it waits for. An interrupt ends the wait. Nothing can be told afterwards.
     */
    void awaitTold() {
        thread.shutdown();
        long begun = System.nanoTime();
        try {
            while (!thread.awaitTermination(SAY_AGAIN.toSeconds(), TimeUnit.SECONDS)) {
                LOG.warn(
                        "the training is over and has waited {} s for its listeners, which have"
                                + " {} events still to hear",
                        TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - begun),
                        untold);
            }
        } catch (InterruptedException e) {
            if (untold.get() > 0) {
                LOG.warn("interrupted; listeners have {} events still to hear", untold);
            }
            Thread.currentThread().interrupt();
        }
    }

    /** What the run is to report to. */
    RunListener of(RunAssembly assembly) {
        long last = assembly.plan().steps().last();
        var tokens = assembly.steps().tokens();
        var learningRate = assembly.model().optimizer().learningRate();
        Path checkpoints = assembly.options().directory().resolve(CheckpointFolders.FOLDER);
        return new RunListener() {
            @Override
            public void onStep(StepReport report) {
                loss = new Loss(report.step(), report.loss());
                var step =
                        new TrainingStep(
                                report.step(),
                                last,
                                report.loss(),
                                report.gradientNorm(),
                                learningRate.at(report.step()),
                                tokens.of(report.step()),
                                Duration.ofNanos(report.endNanos() - report.startNanos()));
                tell(listener -> listener.onStep(step));
            }

            @Override
            public void onEvaluation(long step, double measured, OptionalDouble accuracy) {
                heldOutLoss = OptionalDouble.of(measured);
                tell(listener -> listener.onHeldOutLoss(step, measured));
            }

            @Override
            public void onCheckpoint(long step, long bytes, long nanos) {
                Path saved = CheckpointFolders.of(checkpoints, step);
                tell(listener -> listener.onCheckpoint(step, saved));
            }

            @Override
            public void onCheckpointFailed(long step, String reason) {
                onNote("step %d was not saved: %s".formatted(step, reason));
            }

            @Override
            public void onRecovering(int epoch, String cause) {
                onNote("recovering in epoch %d: %s".formatted(epoch, cause));
            }

            @Override
            public void onRecovery(RecoveryReport report) {
                onNote("recovered: continues after step " + report.fromStep());
            }

            @Override
            public void onStall(String report) {
                onNote(report);
            }
        };
    }
}
