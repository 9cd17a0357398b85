/** Pictures of schedules and of runs, as text: grid, SVG, Chrome trace. */
@NullMarked
package dev.penstock.schedules.render;

import org.jspecify.annotations.NullMarked;
