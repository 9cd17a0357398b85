package dev.penstock.actors.simulation;

import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.actors.collective.SoloGroup;
import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.DeviceScope;
import dev.penstock.cuda.device.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/**
 * What a stage of a replica that takes steps alone exchanges with its peers. At the end of every
 * few steps it notes how far it has come from its anchors. The mean over all replicas moves the
 * anchors some steps later, and each replica goes halfway to them.
 *
 * <p>The sum runs beside the ops. Whatever needs its result waits for it, outside of all ops: the
 * begin of a step or of an evaluation, and a checkpoint. The difference stays until a step has
 * passed, so that all can exchange once more in another epoch, also those that were done.
 */
final class SimExchange {
    static final float RATE = 0.7f;

    private static final long NONE = -1;

    private final int every;
    private final int lag;
    private final Runnable waits;
    private final LongConsumer exchanged;
    private final Tensor own;
    private final Tensor anchor;
    private final Tensor difference;
    private final Tensor sum;
    private CollectiveGroup replicas = SoloGroup.GROUP;

    /** Of this epoch; null before it has begun. */
    private @Nullable Collective collective;

    /** The step after which the difference was noted. */
    private long taken = NONE;

    private boolean applied;

    /** The last step that was updated, or that of the checkpoint. */
    private long updated = NONE;

    /**
     * @param own weights of the replica, from which it starts
     * @param waits is called before a wait for others
     * @param exchanged is told after which step a mean was applied
     */
    SimExchange(
            Scenario scenario,
            Tensor own,
            DeviceScope scope,
            Runnable waits,
            LongConsumer exchanged) {
        this.every = scenario.every();
        this.lag = scenario.lag();
        this.waits = waits;
        this.exchanged = exchanged;
        this.own = own;
        this.anchor = scope.tensor("anchor", DType.F32, 1, own.columns());
        this.difference = scope.tensor("difference", DType.F32, 1, own.columns());
        this.sum = scope.tensor("sum", DType.F32, 1, own.columns());
        anchor.segment().copyFrom(own.segment());
    }

    Tensor anchor() {
        return anchor;
    }

    /** Continues from what {@link #tensors} had in a checkpoint. */
    void fill(MemorySegment saved, long step) {
        anchor.segment().copyFrom(saved.asSlice(0, anchor.bytes()));
        if (saved.byteSize() > anchor.bytes()) {
            difference.segment().copyFrom(saved.asSlice(anchor.bytes()));
            taken = step - step % every;
        }
        updated = step;
    }

    void connect(CollectiveGroup newReplicas) {
        replicas = newReplicas;
        collective = null;
    }

    void beginTraining(long step) {
        if (applied && step > taken + lag + 1) {
            taken = NONE;
        }
        if (taken != NONE) {
            begin();
        }
        settle(step - 1);
    }

    private void begin() {
        if (collective == null) {
            sum.segment().copyFrom(difference.segment());
            collective = replicas.allReduce(sum);
        }
    }

    /** Applies what is due after the last update. */
    void settle() {
        settle(updated);
    }

    private void settle(long step) {
        if (taken == NONE || step < taken + lag) {
            return;
        }
        begin();
        Collective running = collective;
        if (running != null && !running.advance()) {
            waits.run();
            replicas.await(running);
        }
        if (!applied) {
            apply();
            applied = true;
            exchanged.accept(step);
        }
    }

    private void apply() {
        for (int i = 0; i < own.columns(); i++) {
            float mean = SimStage.get(sum, i) / replicas.size();
            float moved = SimStage.get(anchor, i) - RATE * mean;
            SimStage.set(anchor, i, moved);
            SimStage.set(own, i, (SimStage.get(own, i) + moved) / 2);
        }
    }

    /** Moves the exchange on, without waiting. */
    void advance() {
        Collective running = collective;
        if (running != null) {
            running.advance();
        }
    }

    void afterUpdate(long step) {
        updated = step;
        if (step % every != 0) {
            return;
        }
        taken = step;
        collective = null;
        applied = false;
        for (int i = 0; i < own.columns(); i++) {
            SimStage.set(difference, i, SimStage.get(anchor, i) - SimStage.get(own, i));
        }
    }

    /** What there is beside weights and momenta. */
    List<NamedTensor> tensors() {
        List<NamedTensor> tensors = new ArrayList<>();
        tensors.add(new NamedTensor("anchor", List.of(own.columns()), anchor));
        if (taken != NONE && !applied) {
            tensors.add(new NamedTensor("difference", List.of(own.columns()), difference));
        }
        return tensors;
    }
}
