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
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Hands on what a run reports, in the types of this package. The first that throws stops it. */
final class ToldListeners {
    private final List<TrainingListener> listeners;
    private final Training training;
    private volatile OptionalDouble loss = OptionalDouble.empty();
    private volatile OptionalDouble heldOutLoss = OptionalDouble.empty();
    private volatile @Nullable RuntimeException thrown;

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
        requireNoneThrew();
    }

    /** The loss of the last step, if one was done. */
    OptionalDouble loss() {
        return loss;
    }

    /** The last held-out loss, if one was measured. */
    OptionalDouble heldOutLoss() {
        return heldOutLoss;
    }

    /** Throws what a listener threw. */
    void requireNoneThrew() {
        RuntimeException first = thrown;
        if (first != null) {
            throw new PenstockException(List.of("a listener threw " + first), first);
        }
    }

    private void tell(Consumer<TrainingListener> what) {
        if (thrown != null) {
            return;
        }
        try {
            training.telling(() -> listeners.forEach(what));
        } catch (RuntimeException e) {
            thrown = e;
            training.stop();
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
                loss = OptionalDouble.of(report.loss());
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
            public void onEvaluation(long step, double measured) {
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
