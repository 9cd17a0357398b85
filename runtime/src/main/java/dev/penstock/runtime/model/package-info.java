/**
 * GPT-2 as stages of a pipeline, from {@link dev.penstock.runtime.model.shape} at the bottom to
 * {@link dev.penstock.runtime.model.stage} and {@link dev.penstock.runtime.model.generation} at the
 * top. The rest of the application sees only these three, and the sources of parameters.
 */
@NullMarked
package dev.penstock.runtime.model;

import org.jspecify.annotations.NullMarked;
