/** Times a lowered schedule under a cost model, with the runtime's semantics. */
@NullMarked
package dev.penstock.schedules.simulate;

import org.jspecify.annotations.NullMarked;
