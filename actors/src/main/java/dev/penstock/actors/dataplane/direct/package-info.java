/**
 * Boundary tensors that bypass the data plane or lie outside of host memory: copies from device to
 * device within a process, under the same rules of slots and credits, and the blocks through which
 * links read and write a device's memory.
 */
@NullMarked
package dev.penstock.actors.dataplane.direct;

import org.jspecify.annotations.NullMarked;
