package dev.penstock.actors.rank;

import dev.penstock.actors.serialization.WireMessage;
import dev.penstock.actors.spi.StepKind;
import java.util.List;
import java.util.OptionalDouble;

/**
 * A command of the supervisor to a rank. One of a lower epoch than the rank's is refused; of a
 * higher epoch, only those that lead there are accepted: prepare, fence, stop.
 */
public sealed interface RankCommand extends WireMessage {
    int epoch();

    /**
     * Run the program of this kind once.
     *
     * @param pass counts all passes of the run; frames carry it
     * @param step training step from 1, or index of the held-out batch from 0
     * @param leftOut micro-batches whose ops are left out, rising: all stages have their gradients
     *     of an earlier pass of this step. Empty: the step begins anew, and sums with it. Else
     *     stages keep their sums; so whatever a rank has folded of the step has to be its own in
     *     the plan that it follows now
     * @param lossScale what the loss of a training step is multiplied by; empty if it is not scaled
     */
    record BeginPass(
            int epoch,
            long pass,
            StepKind kind,
            long step,
            List<Integer> leftOut,
            OptionalDouble lossScale)
            implements RankCommand {
        public BeginPass {
            leftOut = List.copyOf(leftOut);
        }

        /** A whole pass. */
        public BeginPass(int epoch, long pass, StepKind kind, long step) {
            this(epoch, pass, kind, step, List.of(), OptionalDouble.empty());
        }
    }

    /**
     * Apply the optimizer with this factor on the gradients. Idempotent.
     *
     * @param clipFactor of clipping, and 1 / the loss scale; empty if the step overflowed: it
     *     counts as done, and nothing of it is applied
     * @param skipped steps before it that overflowed
     */
    record Commit(int epoch, long step, OptionalDouble clipFactor, long skipped)
            implements RankCommand {
        /** After no step that overflowed. */
        public Commit(int epoch, long step, double clipFactor) {
            this(epoch, step, OptionalDouble.of(clipFactor), 0);
        }
    }

    /** Write this rank's shards of a checkpoint. */
    record Save(int epoch, long step) implements RankCommand {}

    /**
     * The run recovers in a new epoch: stop the pass, close the links, keep parameters, optimizer
     * state and finished gradients, and answer {@link RankEvent.Prepared}.
     *
     * @param cause what happened, in a sentence; empty if it was told before
     */
    record Prepare(int epoch, String cause) implements RankCommand {
        /** One whose cause was told before, or matters to nobody. */
        public Prepare(int epoch) {
            this(epoch, "");
        }
    }

    /**
     * Open the links of this epoch and answer {@link RankEvent.Resumed}; after {@link Prepare}.
     *
     * @param start what to continue with
     */
    record Resume(StateSource start, EpochLinks links) implements RankCommand {
        @Override
        public int epoch() {
            return links.epoch();
        }
    }

    /**
     * The run continues without this rank, whose place another has taken: free everything and end.
     */
    record Fence(int epoch, String reason) implements RankCommand {}

    /** Free everything and stop. */
    record Stop(int epoch) implements RankCommand {}
}
