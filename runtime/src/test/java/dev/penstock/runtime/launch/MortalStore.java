package dev.penstock.runtime.launch;

import dev.penstock.actors.spi.CheckpointStore;
import dev.penstock.actors.spi.NamedTensor;
import dev.penstock.actors.spi.RankPlace;
import java.util.List;
import java.util.OptionalLong;

/** The checkpoints of a process that may die: it begins no file then. */
record MortalStore(CheckpointStore store, ProcessLife life) implements CheckpointStore {
    @Override
    public ShardFile writeShard(
            long step, int epoch, int stage, RankPlace place, List<NamedTensor> state) {
        life.requireAlive();
        return store.writeShard(step, epoch, stage, place, state);
    }

    @Override
    public void publish(long step, int epoch, List<ShardFile> shards) {
        throw new UnsupportedOperationException("the supervisor publishes");
    }

    @Override
    public OptionalLong newestBefore(long step) {
        return store.newestBefore(step);
    }
}
