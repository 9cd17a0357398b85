/** A rank's working side: the interpreter of rank programs on its own thread and device. */
@NullMarked
package dev.penstock.actors.shard;

import org.jspecify.annotations.NullMarked;
