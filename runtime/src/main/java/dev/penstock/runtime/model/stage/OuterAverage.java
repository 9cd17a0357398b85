package dev.penstock.runtime.model.stage;

import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.actors.collective.SoloGroup;
import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.runtime.model.parameters.OuterState;
import dev.penstock.runtime.model.parameters.ParameterSource;
import dev.penstock.runtime.model.shape.OuterSettings;
import java.util.List;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;

/**
 * Says when a stage of a replica that takes steps alone exchanges with the other replicas, and
 * makes it so; see {@link OuterSettings}.
 *
 * <pre>
 *   update of step t          the difference of a fragment is noted
 *   steps t+1 .. t+lag        the collective runs beside the ops
 *   then, before anything     the collective ends, and the outer optimizer is applied:
 *   reads the result          at the beginning of a step, of an evaluation, or of a checkpoint
 * </pre>
 *
 * <p>The committed state is that before the outer optimizer, and the difference stays until a step
 * has been updated: a pass that is abandoned runs again in another epoch, where all replicas
 * exchange once more, also those that were done. Held-out batches read the outer parameters. The
 * shard's thread only.
 */
final class OuterAverage {
    private static final int NONE = -1;
    private static final long UNKNOWN = -1;

    private final OuterSettings settings;
    private final OuterState state;
    private final int replica;
    private final Kernels kernels;
    private CollectiveGroup group = SoloGroup.GROUP;

    /** The fragment whose difference is noted. */
    private int fragment = NONE;

    /** The step after which it was noted. */
    private long taken = UNKNOWN;

    /** Of this epoch; null before it has begun. */
    private @Nullable Collective collective;

    private boolean applied;

    /** The last step that was updated. */
    private long updated = UNKNOWN;

    private boolean readsAnchors;

    OuterAverage(OuterSettings settings, OuterState state, int replica, Kernels kernels) {
        this.settings = settings;
        this.state = state;
        this.replica = replica;
        this.kernels = kernels;
    }

    /**
     * Continues from where a checkpoint was taken, or from what is swapped; to be called when the
     * parameters are filled, or are those of the last update.
     *
     * @param source of what a checkpoint has beside the parameters
     */
    void fill(ParameterSource source) {
        source.swapped()
                .ifPresentOrElse(
                        commit -> continueAfter(commit.step()),
                        () -> fragment = state.fill(source, replica, kernels));
    }

    /**
     * A replica that was killed may have noted no difference yet, and may have applied a mean to
     * some groups or to all: all replicas exchange once more, and the groups know.
     */
    private void continueAfter(long step) {
        long noted = state.noted();
        if (noted != step) {
            afterUpdate(step);
        }
        updated = step;
        if (fragment == NONE && noted >= 0 && noted + settings.lag() >= step) {
            fragment = settings.at(noted).orElseThrow();
            taken = noted;
        }
    }

    void connect(CollectiveGroup replicas) {
        group = replicas;
        collective = null;
    }

    /** Returns the group that sums gradients in a training step. */
    CollectiveGroup summing(long step) {
        return sumsIn(step) ? group : SoloGroup.GROUP;
    }

    boolean sumsIn(long step) {
        return settings.sumsIn(step);
    }

    /** Whether replicas are, and the anchors were left behind. */
    private boolean areEqual() {
        return updated != UNKNOWN && sumsIn(updated);
    }

    void beginTraining(long step) {
        if (readsAnchors) {
            readsAnchors = false;
            state.readOwn(kernels);
        }
        if (step > 1 && step == settings.after() + 1) {
            // not behind the update of the step before, which may have been skipped
            state.anchorAfter(step - 1, kernels);
        }
        if (fragment != NONE && taken == UNKNOWN) {
            taken = settings.lastTurn(fragment, step - 1);
            state.keepDifference(taken, taken + settings.lag());
        }
        if (fragment != NONE && applied && updated > taken + settings.lag()) {
            fragment = NONE;
        }
        if (fragment != NONE && step > taken) {
            begin();
        }
        settle(step - 1);
    }

    void beginEvaluation() {
        settle(updated);
        if (!readsAnchors && !areEqual()) {
            readsAnchors = true;
            state.readAnchors(kernels);
        }
    }

    private void begin() {
        if (collective == null) {
            collective = state.begin(fragment, group, kernels);
        }
    }

    /** Ends what is to be applied after this step; once more in another epoch. */
    private void settle(long step) {
        if (fragment == NONE || taken == UNKNOWN || step < taken + settings.lag()) {
            return;
        }
        begin();
        Collective running = collective;
        if (running != null) {
            group.await(running);
        }
        if (!applied) {
            state.apply(fragment, taken, kernels);
            applied = true;
            if (readsAnchors) {
                state.readAnchors(kernels); // the rounded copies of which follow the parameters
            }
        }
    }

    /** Moves the exchange on, without waiting. */
    void advance() {
        Collective running = collective;
        if (fragment != NONE && running != null) {
            running.advance();
        }
    }

    void afterUpdate(long step) {
        updated = step;
        OptionalInt turn = settings.at(step);
        if (turn.isPresent() && state.has(turn.getAsInt())) {
            fragment = turn.getAsInt();
            taken = step;
            collective = null;
            applied = false;
            state.takeDifference(fragment, kernels);
            kernels.finish();
            state.keepDifference(step, step + settings.lag());
        }
    }

    List<NamedTensor> tensors() {
        settle(updated);
        return areEqual() ? state.common(replica) : state.state(replica, applied ? NONE : fragment);
    }
}
