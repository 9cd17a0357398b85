/**
 * Ports: what the actor runtime needs from the application, and nothing of how it is done. The
 * actors call these; {@code dev.penstock.runtime} implements them.
 */
@NullMarked
package dev.penstock.actors.spi;

import org.jspecify.annotations.NullMarked;
