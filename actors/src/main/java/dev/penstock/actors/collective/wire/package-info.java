/** Collectives over the data plane, sent directly or round a ring. */
@NullMarked
package dev.penstock.actors.collective.wire;

import org.jspecify.annotations.NullMarked;
