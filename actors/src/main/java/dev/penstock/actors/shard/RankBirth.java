package dev.penstock.actors.shard;

import dev.penstock.actors.mirror.MirrorLayout;
import dev.penstock.actors.serialization.WireMessage;

/**
 * How a rank comes to live in a process.
 *
 * @param epoch of the run at that time
 * @param start where its parameters come from
 * @param mirrors who holds whose mirror
 * @param link where the media driver is; empty if the process knows
 */
public record RankBirth(int rank, int epoch, RankStart start, MirrorLayout mirrors, String link)
        implements WireMessage {}
