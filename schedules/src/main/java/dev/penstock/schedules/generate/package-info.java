/** Generators of schedules, one file each: compute ops only, pure functions of the shape. */
@NullMarked
package dev.penstock.schedules.generate;

import org.jspecify.annotations.NullMarked;
