package dev.penstock.actors.rank;

import dev.penstock.actors.serialization.WireMessage;
import dev.penstock.actors.spi.CheckpointStore.ShardFile;
import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.StepResult;
import java.util.List;

/** A message of a rank to the supervisor, in the epoch that the rank knows. */
public sealed interface RankEvent extends WireMessage {
    int rank();

    int epoch();

    /** The device is open, the parameters are in place and the rank is ready for commands. */
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

    /** The rank's part of a checkpoint could not be written; the rank continues. */
    record SaveFailed(int rank, int epoch, long step, String reason) implements RankEvent {}

    /**
     * The rank is stopped with closed links, ready for {@link RankCommand.Resume}.
     *
     * @param state what it holds of its own stages
     * @param mirrors what it holds of other ranks' stages; by its own number, what all that hold
     *     the same by the plan find here: to say that of each would take as many words as there are
     *     replicas, of each replica
     * @param locations what it knows of where all ranks live
     * @param layout of the plan that its stages follow, see {@link
     *     dev.penstock.actors.spi.RunPlan#layout}
     * @param folded what its stages hold of a step that is not finished
     */
    record Prepared(
            int rank,
            int epoch,
            HeldState state,
            List<HeldState> mirrors,
            LocationDigests locations,
            String layout,
            List<FoldedStage> folded)
            implements RankEvent {
        /** Nothing that is of use to a run. */
        private static final long NOTHING = -1;

        public Prepared {
            mirrors = List.copyOf(mirrors);
            folded = List.copyOf(folded);
        }

        /** Of a rank that holds nothing of an unfinished step. */
        public Prepared(
                int rank,
                int epoch,
                HeldState state,
                List<HeldState> mirrors,
                LocationDigests locations,
                String layout) {
            this(rank, epoch, state, mirrors, locations, layout, List.of());
        }

        /** The same, of a rank whose stages are those of another plan. */
        public Prepared withoutState() {
            var nothing = new HeldState(rank, NOTHING, NOTHING);
            return new Prepared(rank, epoch, nothing, List.of(), locations, layout);
        }

        /** The same, of a rank that has dropped the gradients that wait for a commit. */
        public Prepared withoutGradients() {
            return new Prepared(
                    rank,
                    epoch,
                    state.withoutGradients(),
                    mirrors.stream().map(HeldState::withoutGradients).toList(),
                    locations,
                    layout,
                    folded);
        }
    }

    /**
     * What a stage holds of a step that was interrupted: exact sums that no reduction has touched.
     *
     * @param step the training step
     * @param microBatches whose gradients are complete in the sums, rising
     */
    record FoldedStage(int stage, long step, List<Integer> microBatches) implements WireMessage {
        public FoldedStage {
            microBatches = List.copyOf(microBatches);
        }
    }

    /**
     * How far a copy of a rank's state has got.
     *
     * @param rank the rank whose state it is
     * @param committedStep the last step that was applied
     * @param readyStep the step whose complete gradients wait for the commit; -1 if there are none
     */
    record HeldState(int rank, long committedStep, long readyStep) implements WireMessage {
        /**
         * Returns whether this state has applied a committed step, or will when its commit is
         * repeated.
         */
        public boolean reaches(long step) {
            return committedStep == step || readyStep == step;
        }

        HeldState withoutGradients() {
            return new HeldState(rank, committedStep, -1);
        }
    }

    /**
     * The links are open in the new epoch and the state is in place. It repeats what the rank is,
     * because the supervisor may not be the one that heard the rank open.
     */
    record Resumed(int rank, int epoch, String device, String fingerprint) implements RankEvent {}

    /** A sign of life, with what the rank is doing. */
    record Lease(int rank, int epoch, RankActivity activity) implements RankEvent {}

    /**
     * A link broke; the rank is stopped and keeps its state, ready for {@link RankCommand.Prepare}.
     */
    record LinkLost(int rank, int epoch, String reason) implements RankEvent {}

    /**
     * The checkpoint that the rank was to start from is damaged; it holds nothing now, and waits
     * for {@link RankCommand.Prepare}.
     *
     * @param step of the checkpoint
     * @param reason names the file
     */
    record CheckpointDamaged(int rank, int epoch, long step, String reason) implements RankEvent {}

    /** A NaN or an infinity appeared; as with a lost link, the rank is stopped. */
    record NonFinite(int rank, int epoch, long step, String reason) implements RankEvent {}

    /**
     * The rank does not take an order: it is in a higher epoch, or another supervisor raised this
     * one. Told to whoever gave the order, whom the rank does not obey.
     *
     * @param epoch that the rank is in
     */
    record Refused(int rank, int epoch) implements RankEvent {}

    /**
     * The rank cannot continue and ends.
     *
     * @param repeats whether another try would fail the same way
     */
    record Failed(int rank, int epoch, String reason, boolean repeats) implements RankEvent {}

    /** Everything is freed. */
    record Stopped(int rank, int epoch) implements RankEvent {}
}
