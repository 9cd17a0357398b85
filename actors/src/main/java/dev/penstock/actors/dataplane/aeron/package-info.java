/**
 * The data plane over Aeron: an inbox stream per rank, a publication per direction, one poller
 * thread per process, and the media driver inside or beside the process. The only place that sees
 * {@code io.aeron}. Start with {@link dev.penstock.actors.dataplane.aeron.AeronDataPlane}.
 */
@NullMarked
package dev.penstock.actors.dataplane.aeron;

import org.jspecify.annotations.NullMarked;
