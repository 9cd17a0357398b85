/** Stages that generate and score text, keeping keys and values of what they have read. */
@NullMarked
package dev.penstock.runtime.model.generation;

import org.jspecify.annotations.NullMarked;
