/** Pictures of schedules. */
@NullMarked
package dev.penstock.schedules.render;

import org.jspecify.annotations.NullMarked;
