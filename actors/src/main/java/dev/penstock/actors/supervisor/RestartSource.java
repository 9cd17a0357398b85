package dev.penstock.actors.supervisor;

import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.rank.StateSource;
import dev.penstock.actors.spi.RecoveryReport.Restart;
import java.util.Map;
import java.util.Objects;

/** What the ranks of a run restart from in an epoch. */
sealed interface RestartSource {
    /** Nobody is missing: all hold the same step in memory. */
    record Memory() implements RestartSource {}

    /**
     * The living hold the step in memory, and mirrors of the missing ones.
     *
     * @param holders which rank has the mirror, by the rank that is missing
     */
    record Mirrors(long step, Map<Integer, Integer> holders) implements RestartSource {
        public Mirrors {
            holders = Map.copyOf(holders);
        }
    }

    /**
     * The living hold the step in memory; ranks that take part from now on begin from a checkpoint
     * of it.
     */
    record Joined(StateSource start) implements RestartSource {}

    /**
     * All go back.
     *
     * @param refuges nodes of others that missing ranks go to
     */
    record Checkpoint(StateSource start, Map<Integer, NodeInfo> refuges) implements RestartSource {
        public Checkpoint {
            refuges = Map.copyOf(refuges);
        }
    }

    /** Where a rank that lives takes its state from. */
    default StateSource ofLiving() {
        return switch (this) {
            case Memory _, Mirrors _, Joined _ -> new StateSource.Kept();
            case Checkpoint(StateSource start, var _) -> start;
        };
    }

    /** Where a rank that is hosted anew takes its state from. */
    default StateSource ofMissing(int rank) {
        return switch (this) {
            case Memory _ -> throw new IllegalStateException("rank " + rank + " is not missing");
            case Mirrors(long step, var holders) ->
                    new StateSource.FromMirror(Objects.requireNonNull(holders.get(rank)), step);
            case Joined(StateSource start) -> start;
            case Checkpoint(StateSource start, var _) -> start;
        };
    }

    /** As it is reported. */
    default Restart reported() {
        return switch (this) {
            case Memory _, Joined _ -> Restart.MEMORY;
            case Mirrors _ -> Restart.MIRROR;
            case Checkpoint _ -> Restart.CHECKPOINT;
        };
    }
}
