package dev.penstock.actors.supervisor;

import java.util.Set;

/** What becomes of a run after one of its events. */
sealed interface Turn {
    Turn GO_ON = new GoOn();
    Turn FINISHED = new Finished();

    /** It waits for answers. */
    record GoOn() implements Turn {}

    /** Nothing is left to do. */
    record Finished() implements Turn {}

    /** It cannot go on. */
    record Broken(String reason) implements Turn {}

    /** These ranks leave their nodes: a checkpoint has their last step. */
    record Move(Set<Integer> ranks) implements Turn {
        public Move {
            ranks = Set.copyOf(ranks);
        }
    }

    /** The loss or a gradient of this step is not finite. */
    record NotFinite(long step, String reason) implements Turn {}
}
