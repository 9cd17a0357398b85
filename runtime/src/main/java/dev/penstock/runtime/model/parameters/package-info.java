/**
 * Parameters in Hugging Face's naming: where they come from, how they are grouped, sharded,
 * gathered before they are needed and released after, and how their gradients are summed (ZeRO,
 * Rajbhandari et al., arXiv 1910.02054).
 */
@NullMarked
package dev.penstock.runtime.model.parameters;

import org.jspecify.annotations.NullMarked;
