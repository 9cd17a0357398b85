/**
 * Links that are slower than the real ones, for trying out: a data plane over another one that
 * shows a tensor to its receiver only once a link of a given bandwidth, latency and loss would have
 * delivered it. Start with {@link dev.penstock.actors.dataplane.emulated.EmulatedDataPlane}.
 */
@NullMarked
package dev.penstock.actors.dataplane.emulated;

import org.jspecify.annotations.NullMarked;
