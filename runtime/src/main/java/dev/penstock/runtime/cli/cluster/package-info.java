/** Commands about nodes of a cluster and the runs on them, and the certificates they use. */
@NullMarked
package dev.penstock.runtime.cli.cluster;

import org.jspecify.annotations.NullMarked;
