package dev.penstock.actors.supervisor;

import dev.penstock.actors.spi.RunPlan;
import java.util.Set;

/** What becomes of a run after one of its events. */
sealed interface NextAction {
    NextAction GO_ON = new GoOn();
    NextAction FINISHED = new Finished();

    /** It waits for answers. */
    record GoOn() implements NextAction {}

    /** Nothing is left to do. */
    record Finished() implements NextAction {}

    /** Nothing moves any more, although all live: as after a message that was lost. */
    record Stalled(String reason) implements NextAction {}

    /** Another supervisor has the run. */
    record Superseded(int epoch) implements NextAction {}

    /** It cannot go on. */
    record Broken(String reason) implements NextAction {}

    /** These ranks leave their nodes: a checkpoint has their last step. */
    record Move(Set<Integer> ranks) implements NextAction {
        public Move {
            ranks = Set.copyOf(ranks);
        }
    }

    /** The run follows another plan: a checkpoint has its last step. */
    record Revise(RunPlan revised) implements NextAction {}

    /** The loss or a gradient of this step is not finite. */
    record NotFinite(long step, String reason) implements NextAction {}
}
