package dev.penstock.actors.exploration;

import dev.penstock.actors.node.HostedRank;
import dev.penstock.actors.rank.RankEvent;
import java.util.List;

/** A word to a supervisor, from a process. */
sealed interface Word {
    record Introduction(int epoch, List<HostedRank> hosted) implements Word {}

    record Hosted(int rank, int birth) implements Word {}

    record Event(RankEvent event) implements Word {}
}
