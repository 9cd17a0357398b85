package dev.penstock.runtime.metrics;

import dev.penstock.actors.precision.Overflow;
import dev.penstock.actors.spi.PlanRevision;
import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunMember;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.schedules.ir.Schedule;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.OptionalDouble;
import java.util.Set;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Passes each event to several listeners, in their order. An exception from a listener is logged
 * once and goes no further: neither the other listeners nor the training notice it.
 */
public final class ListenerFanOut implements RunListener {
    private static final Logger LOG = LoggerFactory.getLogger(ListenerFanOut.class);

    private final List<RunListener> listeners;
    private final Set<RunListener> failed = Collections.newSetFromMap(new IdentityHashMap<>());

    public ListenerFanOut(List<? extends RunListener> listeners) {
        this.listeners = List.copyOf(listeners);
    }

    @Override
    public void onOpened(List<String> devices, String fingerprint) {
        each(listener -> listener.onOpened(devices, fingerprint));
    }

    @Override
    public void onPlaced(List<Integer> homes) {
        each(listener -> listener.onPlaced(homes));
    }

    @Override
    public void onStep(StepReport report) {
        each(listener -> listener.onStep(report));
    }

    @Override
    public void onEvaluation(long step, double loss, OptionalDouble accuracy) {
        each(listener -> listener.onEvaluation(step, loss, accuracy));
    }

    @Override
    public void onCheckpoint(long step, long bytes, long nanos) {
        each(listener -> listener.onCheckpoint(step, bytes, nanos));
    }

    @Override
    public void onCheckpointFailed(long step, String reason) {
        each(listener -> listener.onCheckpointFailed(step, reason));
    }

    @Override
    public void onRecovering(int epoch, String cause) {
        each(listener -> listener.onRecovering(epoch, cause));
    }

    @Override
    public void onRecovery(RecoveryReport report) {
        each(listener -> listener.onRecovery(report));
    }

    @Override
    public void onRevised(PlanRevision revision, Schedule training, long completed) {
        each(listener -> listener.onRevised(revision, training, completed));
    }

    @Override
    public void onMembers(List<RunMember> members) {
        each(listener -> listener.onMembers(members));
    }

    @Override
    public void onStall(String report) {
        each(listener -> listener.onStall(report));
    }

    @Override
    public void onPlanNote(String note) {
        each(listener -> listener.onPlanNote(note));
    }

    @Override
    public void onOverflow(Overflow overflow) {
        each(listener -> listener.onOverflow(overflow));
    }

    @Override
    public void onStraggler(int rank, long step, double factor) {
        each(listener -> listener.onStraggler(rank, step, factor));
    }

    private void each(Consumer<RunListener> event) {
        for (RunListener listener : listeners) {
            try {
                event.accept(listener);
            } catch (RuntimeException | LinkageError e) {
                if (failed.add(listener)) {
                    LOG.warn(
                            "{} failed and may miss events from here on; training continues",
                            listener.getClass().getSimpleName(),
                            e);
                }
            }
        }
    }
}
