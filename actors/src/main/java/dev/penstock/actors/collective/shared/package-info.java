/** Collectives among ranks of one process, which read each other's memory. */
@NullMarked
package dev.penstock.actors.collective.shared;

import org.jspecify.annotations.NullMarked;
