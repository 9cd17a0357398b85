package dev.penstock.actors.exploration;

import dev.penstock.actors.node.HostedRank;
import dev.penstock.actors.rank.RankAssignment;
import dev.penstock.actors.rank.RankCommand;

/** A word to a process, from a supervisor. */
sealed interface Order {
    record Ask(int epoch) implements Order {}

    record Host(RankAssignment birth) implements Order {}

    record Tell(int birth, RankCommand command) implements Order {}

    record Dismiss(HostedRank stray, RankCommand command) implements Order {}
}
