/** A rank's control side: spawns and watches its shards, renews the rank's lease. */
@NullMarked
package dev.penstock.actors.stage;

import org.jspecify.annotations.NullMarked;
