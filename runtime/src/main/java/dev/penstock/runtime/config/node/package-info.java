/** The configuration of a node of a cluster. */
@NullMarked
package dev.penstock.runtime.config.node;

import org.jspecify.annotations.NullMarked;
