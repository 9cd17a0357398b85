package dev.penstock.actors.supervisor;

import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.node.HostedRank;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.rank.RankAssignment;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.spi.CheckpointStore.ShardFile;
import dev.penstock.actors.spi.PlanRevision;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;

/**
 * What a {@link RunCoordinator} wants done. Its caller performs effects in the order of their list,
 * each complete before the next.
 */
public sealed interface Effect {
    /** Ask a node to open a rank; the answer is {@code onHosted} or {@code onHostRefused}. */
    record HostRank(NodeInfo node, RankAssignment birth) implements Effect {}

    /** End a rank on this node that is not where the run has it. */
    record Dismiss(NodeInfo node, HostedRank stray, RankCommand.Stop order) implements Effect {}

    /** A node whose rank goes elsewhere ends, and is listened to no more. */
    record Leave(NodeInfo node) implements Effect {}

    /** Hand an order to a hosted rank. */
    record TellRank(int rank, RankCommand order) implements Effect {}

    /** Make these durable before anything that follows. */
    record Journal(List<JournalRecord> entries) implements Effect {
        public Journal {
            entries = List.copyOf(entries);
        }

        Journal(JournalRecord entry) {
            this(List.of(entry));
        }
    }

    /**
     * Publish a checkpoint beside everything else; the answer is {@code onPublished}.
     *
     * @param epoch in which its shards were written
     * @param startNanos when its first shard was asked for
     * @param lossScale the scaler's state after that step; empty if the loss is not scaled
     */
    record Publish(
            long step,
            int epoch,
            List<ShardFile> files,
            long bytes,
            long startNanos,
            String lossScale)
            implements Effect {
        public Publish {
            files = List.copyOf(files);
        }
    }

    /** Remove what was written of a checkpoint that failed. */
    record Abandon(long step, int epoch) implements Effect {}

    /** Look for a checkpoint older than this damaged one; the answer is {@code onOlder}. */
    record FindOlder(long damaged) implements Effect {}

    /**
     * Start a process, if the run's processes are this supervisor's to start; its node introduces
     * itself.
     *
     * @param rank that it is for; empty for a spare
     */
    record StartProcess(Optional<Integer> rank) implements Effect {}

    /**
     * Make the plan of the run in which these ranks are absent; the answer is {@code onPlan}.
     *
     * @param now the revision that the run follows
     */
    record AskPlan(PlanRevision now, Set<Integer> absent) implements Effect {
        public AskPlan {
            absent = Set.copyOf(absent);
        }
    }

    /**
     * Find out whether these nodes, which have other ranks, have room for ranks that go there; the
     * answer is {@code onRoom}.
     */
    record AskRoom(Map<Integer, NodeInfo> nodes) implements Effect {
        public AskRoom {
            nodes = Map.copyOf(nodes);
        }
    }

    /**
     * Start other media drivers for those that are gone; each answer is {@code onLinkRestarted}.
     *
     * @param gone their directories; empty text for one that is not known
     */
    record RestartLink(Set<String> gone) implements Effect {
        public RestartLink {
            gone = Set.copyOf(gone);
        }
    }

    /**
     * Look at these nodes' processes and at this one, as far as they are on this host; the answer
     * is {@code onVitals}.
     */
    record ReadVitals(Set<NodeInfo> nodes) implements Effect {
        public ReadVitals {
            nodes = Set.copyOf(nodes);
        }
    }

    /** Tell the listener. */
    record Notify(Consumer<RunListener> call) implements Effect {}

    /** The run is over; nothing follows. */
    record Finish(RunOutcome outcome) implements Effect {}
}
