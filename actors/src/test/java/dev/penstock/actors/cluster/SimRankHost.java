package dev.penstock.actors.cluster;

import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** What a node announces for a rank that it was told to host: an imagined node actor. */
final class SimRankHost {
    final SimShare share;
    final int rank;

    /** Directory of the driver that it named when it began. */
    final String firstDriver;

    /** The ranks that live here, by the epoch in which they were born. */
    final Map<Integer, Integer> births = new TreeMap<>();

    private final long listedAt;
    private NodeRun.@Nullable Command lastWord;
    private boolean ended;
    private boolean passedOver;

    /**
     * @param listedAt when supervisors hear of it
     */
    SimRankHost(SimShare share, int rank, long listedAt) {
        this.share = share;
        this.rank = rank;
        this.firstDriver = share.usedDriver();
        this.listedAt = listedAt;
    }

    SimClusterNode node() {
        return share.node;
    }

    String process() {
        return share.node.offer.process();
    }

    boolean hasEnded() {
        return ended || share.isOver() || !share.node.isAlive();
    }

    boolean isListed(long now) {
        return now >= listedAt;
    }

    /** Said by its death watch when it has ended. */
    void lastWord(NodeRun.Command word) {
        lastWord = word;
    }

    /** Its rank lives elsewhere by now. */
    void passOver() {
        passedOver = true;
    }

    /**
     * Whether a rank may come here. Where its rank has left and the share stays, for the sake of
     * the host's driver or of other ranks, nobody counts the room any more.
     */
    boolean takesItsRank() {
        return !passedOver;
    }

    void end() {
        ended = true;
        births.clear();
    }

    /** A supervisor has it leave. */
    void leave() {
        NodeRun.Command word = lastWord;
        end();
        if (word != null) {
            share.node.after(0, () -> share.run(word));
        }
    }
}
