/** What unequal micro-batches cost, and in which order they take the least time. */
@NullMarked
package dev.penstock.runtime.lengths;

import org.jspecify.annotations.NullMarked;
