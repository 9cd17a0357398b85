/** A run's metrics in the formats of other tools. */
@NullMarked
package dev.penstock.runtime.export;

import org.jspecify.annotations.NullMarked;
