/**
 * Continues texts with a trained model: what each text feeds when, the order of that as a proved
 * schedule, and the pipeline that runs it.
 */
@NullMarked
package dev.penstock.runtime.inference;

import org.jspecify.annotations.NullMarked;
