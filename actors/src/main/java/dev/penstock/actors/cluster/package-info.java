/**
 * Runs in a cluster of nodes: who is there, where ranks go, and who is told how a run gets on. A
 * singleton on role {@code seed} keeps the runs ({@link dev.penstock.actors.cluster.ClusterRuns});
 * every process that works has a {@link dev.penstock.actors.cluster.ClusterNode}. What a run is
 * made of is the application's: {@link dev.penstock.actors.cluster.RunMaker} and {@link
 * dev.penstock.actors.cluster.RunJoiner}.
 */
@NullMarked
package dev.penstock.actors.cluster;

import org.jspecify.annotations.NullMarked;
