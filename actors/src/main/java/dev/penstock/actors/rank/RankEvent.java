package dev.penstock.actors.rank;

import dev.penstock.actors.serialization.WireMessage;
import dev.penstock.actors.spi.CheckpointStore.ShardFile;
import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.StepResult;
import java.util.List;

/** What a rank tells the supervisor, in the epoch that it knows. */
public sealed interface RankEvent extends WireMessage {
    int rank();

    int epoch();

    /** Device open, parameters in place, ready for orders. */
    record Opened(int rank, int epoch, String device, String fingerprint) implements RankEvent {}

    /** A pass is done; after a training pass the rank waits for the commit. */
    record PassDone(int rank, int epoch, long pass, StepResult result) implements RankEvent {}

    /** The optimizer of a step was applied. */
    record StepDone(int rank, int epoch, long step, RankStep timings) implements RankEvent {}

    /** The rank's part of a checkpoint is on disk. */
    record Saved(int rank, int epoch, long step, List<ShardFile> files) implements RankEvent {
        public Saved {
            files = List.copyOf(files);
        }
    }

    /** The rank's part of a checkpoint could not be written; the rank goes on. */
    record SaveFailed(int rank, int epoch, long step, String reason) implements RankEvent {}

    /**
     * The rank stands still with closed links, ready for {@link RankCommand.Resume}.
     *
     * @param state what it holds of its own stages
     * @param mirrors what it holds of other ranks' stages
     */
    record Prepared(int rank, int epoch, HeldState state, List<HeldState> mirrors)
            implements RankEvent {
        public Prepared {
            mirrors = List.copyOf(mirrors);
        }
    }

    /**
     * How far a copy of a rank's state is.
     *
     * @param rank whose state
     * @param committedStep last one that was applied
     * @param readyStep whose complete gradients wait for the commit; -1 if none do
     */
    record HeldState(int rank, long committedStep, long readyStep) implements WireMessage {
        /** Whether this state has seen a committed step, or will when its commit is told again. */
        public boolean reaches(long step) {
            return committedStep == step || readyStep == step;
        }
    }

    /**
     * Links are open in the new epoch, the state is in place. What the rank is is said again: the
     * supervisor may not be the one that heard it open.
     */
    record Resumed(int rank, int epoch, String device, String fingerprint) implements RankEvent {}

    /** A sign of life, and what the rank is at. */
    record Lease(int rank, int epoch, RankActivity activity) implements RankEvent {}

    /**
     * A link broke; the rank stands still and keeps what it has, ready for {@link
     * RankCommand.Prepare}.
     */
    record LinkLost(int rank, int epoch, String reason) implements RankEvent {}

    /** A NaN or an infinity; as with a lost link, the rank stands still. */
    record NonFinite(int rank, int epoch, long step, String reason) implements RankEvent {}

    /**
     * The rank cannot go on and ends.
     *
     * @param repeats whether another try would fail the same way
     */
    record Failed(int rank, int epoch, String reason, boolean repeats) implements RankEvent {}

    /** Everything is freed. */
    record Stopped(int rank, int epoch) implements RankEvent {}
}
