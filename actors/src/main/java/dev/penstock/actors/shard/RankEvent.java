package dev.penstock.actors.shard;

import dev.penstock.actors.serialization.WireMessage;
import dev.penstock.actors.spi.CheckpointStore.ShardFile;
import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.StepResult;
import java.util.List;

/** What a rank tells the supervisor. */
public sealed interface RankEvent extends WireMessage {
    int rank();

    /** Device open, parameters in place, ready for orders. */
    record Opened(int rank, String device, String fingerprint) implements RankEvent {}

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

    /** A sign of life, and what the rank is at. */
    record Lease(int rank, RankActivity activity) implements RankEvent {}

    /** The rank cannot go on. */
    record Failed(int rank, String reason) implements RankEvent {}

    /** Everything is freed. */
    record Stopped(int rank) implements RankEvent {}
}
