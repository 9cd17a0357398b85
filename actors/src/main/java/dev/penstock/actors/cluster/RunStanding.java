package dev.penstock.actors.cluster;

import dev.penstock.actors.serialization.WireMessage;

/**
 * Where a run stands.
 *
 * @param run its name
 * @param step committed steps so far
 * @param lastStep it ends after this one
 * @param nodes that it works on
 * @param ageMs since it was submitted
 * @param detail what it waits for, or why it ended; may be empty
 */
public record RunStanding(
        String run,
        RunState state,
        long step,
        long lastStep,
        int nodes,
        long ageMs,
        String directory,
        String detail)
        implements WireMessage {}
