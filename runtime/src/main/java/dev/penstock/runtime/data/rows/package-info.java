/** Which tokens a training sequence has, and how the sequences of a step come together. */
@NullMarked
package dev.penstock.runtime.data.rows;

import org.jspecify.annotations.NullMarked;
