/**
 * The tensor data plane: tensors travel beside the actors, as frames under credit, from the
 * sender's memory once into a log and once out into the receiver's slot. Contracts only; the
 * transport is in {@code dataplane.aeron}. Start with {@link
 * dev.penstock.actors.dataplane.DataPlane}.
 */
@NullMarked
package dev.penstock.actors.dataplane;

import org.jspecify.annotations.NullMarked;
