package dev.penstock.actors.mirror;

import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StageBuilder;
import dev.penstock.actors.spi.StageMirror;
import dev.penstock.actors.spi.TrainedState;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.Kernels;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalDouble;

/**
 * The mirror of a rank: of all its stages, rising, and the step that they are after.
 *
 * <p>Owned by the shard that holds it: only its thread moves gradients in, updates and closes. A
 * rank that takes over in the same process copies the state out from its own thread, while the
 * holder is between passes. Both go through the lock.
 */
public final class HeldMirror implements AutoCloseable {
    /** No step. */
    public static final long NOTHING = -1;

    private final int rank;
    private final List<StageMirror> stages;
    private long committedStep;
    private long readyStep = NOTHING;
    private boolean closed;

    /**
     * @param rank the mirrored one
     * @param stages closed with this
     * @param committedStep the step that their first values are after; -1 if they must be filled
     *     before they are worth anything
     */
    public HeldMirror(int rank, List<StageMirror> stages, long committedStep) {
        this.rank = rank;
        this.stages = List.copyOf(stages);
        this.committedStep = committedStep;
    }

    /**
     * Builds the mirror of a rank, from the first values that the rank itself starts from.
     *
     * @param device of the rank that holds it
     * @param step that these values are after; {@link #NOTHING} for a mirror to be filled
     */
    public static HeldMirror build(
            int rank, RunPlan plan, StageBuilder programs, Device device, long step) {
        List<StageMirror> stages = new ArrayList<>();
        try {
            for (int stage : plan.stagesOf(rank)) {
                stages.add(programs.mirror(stage, plan.grid().placeOf(rank), device));
            }
            return new HeldMirror(rank, stages, step);
        } catch (RuntimeException e) {
            stages.reversed().forEach(StageMirror::close);
            throw e;
        }
    }

    /** What somebody's own stages are for a rank that holds the same: commits are applied there. */
    static HeldMirror of(int rank, RunPlan plan, List<TrainedState> own, long committedStep) {
        List<Integer> stages = plan.stagesOf(rank);
        List<StageMirror> views = new ArrayList<>();
        for (int i = 0; i < own.size(); i++) {
            views.add(new View(stages.get(i), own.get(i)));
        }
        return new HeldMirror(rank, views, committedStep);
    }

    private record View(int stage, TrainedState trained) implements StageMirror {
        @Override
        public void update(long step, double clipFactor) {}

        @Override
        public void close() {}
    }

    /** The mirrored rank. */
    public int rank() {
        return rank;
    }

    /** The step that the state is after; {@link #NOTHING} if it is not whole. */
    public synchronized long committedStep() {
        return closed ? NOTHING : committedStep;
    }

    /** The step whose gradients lie here, all of them and not yet applied, or {@link #NOTHING}. */
    public synchronized long readyStep() {
        return closed ? NOTHING : readyStep;
    }

    List<TrainedState> states() {
        return stages.stream().map(StageMirror::trained).toList();
    }

    synchronized void incomplete(MirrorPart part) {
        switch (part) {
            case GRADIENTS -> readyStep = NOTHING;
            case STATE -> {
                committedStep = NOTHING;
                readyStep = NOTHING;
            }
        }
    }

    synchronized void arrived(MirrorPart part, long step) {
        switch (part) {
            case GRADIENTS -> readyStep = step;
            case STATE -> {
                committedStep = step;
                readyStep = NOTHING;
            }
        }
    }

    /**
     * Applies a commit; one that was applied before changes nothing, nor does one that is told
     * again before a mirror without a state has got one, which is after that step.
     *
     * @param clipFactor empty if the step counts as done and nothing of it is applied
     * @param skipped steps before it of which nothing was applied
     */
    public synchronized void update(long step, OptionalDouble clipFactor, long skipped) {
        boolean empty = committedStep == NOTHING && readyStep == NOTHING;
        if (committedStep == step || empty) {
            return;
        }
        if (readyStep != step || committedStep == NOTHING) { // a step may have been left out
            throw new IllegalStateException(
                    "commit of step %d: the mirror of rank %d is %s"
                            .formatted(step, rank, describe()));
        }
        committedStep = NOTHING; // half of it, should an exception end this
        readyStep = NOTHING;
        if (clipFactor.isPresent()) {
            double factor = clipFactor.getAsDouble();
            stages.forEach(stage -> stage.skipped(skipped));
            stages.forEach(stage -> stage.update(step, factor));
        }
        committedStep = step;
    }

    /**
     * Copies the state, and gradients that wait for their commit, into a rank that takes over. From
     * any thread.
     *
     * @param step that the state is after, or will be when its commit is told again
     * @param into the new rank's stages, rising
     * @param kernels of the new rank's device
     * @return the step that the state is after; less than {@code step} if its gradients wait
     */
    public synchronized long copyInto(long step, List<TrainedState> into, Kernels kernels) {
        boolean waits = readyStep == step && committedStep != NOTHING;
        if (closed || (committedStep != step && !waits)) {
            throw new IllegalStateException(
                    "rank %d cannot start from its mirror: expected it after step %d or with its gradients, got %s"
                            .formatted(rank, step, closed ? "a closed one" : describe()));
        }
        List<TrainedState> from = states();
        for (int i = 0; i < from.size(); i++) {
            copy(MirrorPart.STATE, from.get(i), into.get(i), kernels);
            if (waits) {
                copy(MirrorPart.GRADIENTS, from.get(i), into.get(i), kernels);
            }
            into.get(i).replaced();
        }
        return committedStep;
    }

    private static void copy(
            MirrorPart part, TrainedState from, TrainedState into, Kernels kernels) {
        List<NamedTensor> sources = part.of(from);
        List<NamedTensor> targets = part.of(into);
        for (int i = 0; i < sources.size(); i++) {
            kernels.copy(sources.get(i).tensor(), targets.get(i).tensor());
        }
    }

    private String describe() {
        return "after step %d, with gradients of step %d (-1: none)"
                .formatted(committedStep, readyStep);
    }

    /** Frees the mirror; nobody can start from it any more. */
    @Override
    public synchronized void close() {
        if (!closed) {
            closed = true;
            stages.reversed().forEach(StageMirror::close);
        }
    }
}
