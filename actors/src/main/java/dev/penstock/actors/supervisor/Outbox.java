package dev.penstock.actors.supervisor;

import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.rank.RankAssignment;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.spi.RunListener;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/** Collects the effects of one input, in order. */
final class Outbox {
    private final RankTable ranks;
    private List<Effect> effects = new ArrayList<>();

    Outbox(RankTable ranks) {
        this.ranks = ranks;
    }

    void add(Effect effect) {
        effects.add(effect);
    }

    void notify(Consumer<RunListener> call) {
        add(new Effect.Notify(call));
    }

    /** Ranks go to their nodes, and whoever takes the run up finds them there. */
    void host(List<RankAssignment> births) {
        if (births.isEmpty()) {
            return;
        }
        add(new Effect.Journal(births.stream().map(this::placed).toList()));
        births.forEach(birth -> add(new Effect.HostRank(nodeOf(birth), birth)));
    }

    private JournalRecord placed(RankAssignment birth) {
        return new JournalRecord.Placed(birth.rank(), nodeOf(birth).process());
    }

    private NodeInfo nodeOf(RankAssignment birth) {
        return ranks.node(birth.rank()).orElseThrow();
    }

    /** To every rank that is there to listen. */
    void tellAll(RankCommand order) {
        for (int rank = 0; rank < ranks.size(); rank++) {
            tell(rank, order);
        }
    }

    /** To a rank, if it is there to listen. */
    void tell(int rank, RankCommand order) {
        if (ranks.listens(rank)) {
            add(new Effect.TellRank(rank, order));
        }
    }

    /** Everything since the last call. */
    List<Effect> drain() {
        List<Effect> drained = effects;
        effects = new ArrayList<>();
        return drained;
    }
}
