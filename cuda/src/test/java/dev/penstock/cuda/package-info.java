/**
 * The kernel contract: every implementation against the same independent truth. Start with {@link
 * dev.penstock.cuda.KernelContract}.
 */
@NullMarked
package dev.penstock.cuda;

import org.jspecify.annotations.NullMarked;
