/**
 * Boundary tensors between ranks of one process whose devices see each other's memory: copied from
 * device to device, past host and data plane, under the same rules of slots and credits.
 */
@NullMarked
package dev.penstock.actors.transfer;

import org.jspecify.annotations.NullMarked;
