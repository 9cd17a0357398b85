package dev.penstock.actors.supervisor;

import dev.penstock.actors.node.NodeInfo;
import java.util.Map;

/** Whether there is room for missing ranks where their mirrors are. */
sealed interface HoldersRoom {
    /** It has not mattered yet. */
    record Unasked() implements HoldersRoom {}

    /**
     * The nodes have been asked.
     *
     * @param nodes where each missing rank would go
     */
    record Asked(Map<Integer, NodeInfo> nodes) implements HoldersRoom {
        public Asked {
            nodes = Map.copyOf(nodes);
        }
    }

    /** They have answered. */
    record Answered(Map<Integer, NodeInfo> nodes, boolean granted) implements HoldersRoom {
        public Answered {
            nodes = Map.copyOf(nodes);
        }
    }

    /** Whether these nodes were asked for these ranks, and for no others since. */
    default boolean isAbout(Map<Integer, NodeInfo> ranks) {
        return switch (this) {
            case Unasked _ -> false;
            case Asked(var nodes) -> nodes.equals(ranks);
            case Answered(var nodes, _) -> nodes.equals(ranks);
        };
    }

    /** After an answer, which may be to a question that is out of date. */
    default HoldersRoom answered(Map<Integer, NodeInfo> ranks, boolean granted) {
        return isAbout(ranks) ? new Answered(ranks, granted) : this;
    }
}
