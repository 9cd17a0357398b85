/** Texts, or pairs of them, with a label each: as lines, as tokens in a file, as a run's data. */
@NullMarked
package dev.penstock.runtime.data.labelled;

import org.jspecify.annotations.NullMarked;
