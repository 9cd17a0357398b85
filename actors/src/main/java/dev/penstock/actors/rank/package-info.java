/**
 * The ranks: {@link dev.penstock.actors.rank.StageActor} is the control side of a rank, {@link
 * dev.penstock.actors.rank.TensorShardActor} owns its device and runs its program on a thread of
 * its own, op by op, in {@link dev.penstock.actors.rank.OpInterpreter}. Every rank has one of each.
 */
@NullMarked
package dev.penstock.actors.rank;

import org.jspecify.annotations.NullMarked;
