package dev.penstock.actors.spi;

import java.util.Optional;

/**
 * Who takes part in a run: a rank where it lives, or a spare process.
 *
 * @param rank empty for a spare
 * @param node name of the node, for people
 * @param version of the program that its process runs; empty if it does not say
 * @param leaseMillis since the rank was last heard of; its lease is renewed several times before it
 *     runs out. 0 for a spare, which has none
 */
public record RunMember(
        Optional<Integer> rank, String node, long pid, String version, long leaseMillis) {}
