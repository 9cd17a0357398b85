/**
 * What links read and write of a device's memory: blocks that lie where they can, with copies to
 * and from the device where that is other memory.
 */
@NullMarked
package dev.penstock.actors.staging;

import org.jspecify.annotations.NullMarked;
