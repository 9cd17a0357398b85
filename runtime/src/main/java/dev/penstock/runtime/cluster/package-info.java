/**
 * Penstock on several machines: a node's process ({@link
 * dev.penstock.runtime.cluster.NodeProcess}), what a seed and its nodes make of a submitted
 * configuration, and the client that submits and follows it.
 */
@NullMarked
package dev.penstock.runtime.cluster;

import org.jspecify.annotations.NullMarked;
