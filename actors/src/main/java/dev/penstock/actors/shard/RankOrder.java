package dev.penstock.actors.shard;

import dev.penstock.actors.serialization.WireMessage;
import dev.penstock.actors.spi.StepKind;

/** What the supervisor orders a rank to do. An order of another epoch is refused. */
public sealed interface RankOrder extends WireMessage {
    int epoch();

    /**
     * Run the program of this kind once.
     *
     * @param pass counts all passes of the run; frames carry it
     * @param step training step from 1, or index of the held-out batch from 0
     */
    record BeginPass(int epoch, long pass, StepKind kind, long step) implements RankOrder {}

    /** Apply the optimizer with this factor on the gradients. Idempotent. */
    record Commit(int epoch, long step, double clipFactor) implements RankOrder {}

    /** Write this rank's shards of a checkpoint. */
    record Save(int epoch, long step) implements RankOrder {}

    /** Free everything and stop. */
    record Stop(int epoch) implements RankOrder {}
}
