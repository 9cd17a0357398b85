/**
 * Continues texts with a trained model: the feeds of each text, their order as a proved schedule,
 * and the pipeline that runs it.
 */
@NullMarked
package dev.penstock.runtime.inference;

import org.jspecify.annotations.NullMarked;
