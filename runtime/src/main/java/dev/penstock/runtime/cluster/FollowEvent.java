package dev.penstock.runtime.cluster;

import dev.penstock.actors.cluster.ClusterRuns;
import dev.penstock.actors.cluster.RunNews;
import dev.penstock.schedules.ir.Schedule;

/** What happens to those who follow a run. */
public sealed interface FollowEvent {
    /** The first event: what the run is. */
    record Began(ClusterRuns.Following run, Schedule schedule) implements FollowEvent {}

    /** News of the run. */
    record Heard(RunNews news) implements FollowEvent {}

    /** The seeds fell silent, or answer again: a line for people. */
    record Contact(String line) implements FollowEvent {}

    /** The last event where no seed has kept the run for too long: a line for people. */
    record NotKept(String line) implements FollowEvent {}

    /** The last event where no seed has answered for too long: a line for people. */
    record GivenUp(String line) implements FollowEvent {}

    /** There is no such run. */
    record NotThere(ClusterRuns.NotThere answer) implements FollowEvent {}

    /** The user wants no more of it. */
    record Detached() implements FollowEvent {}
}
