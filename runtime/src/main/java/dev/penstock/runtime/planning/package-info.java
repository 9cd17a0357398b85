/**
 * The figures that planning and simulating commands compute from a model, a hardware description
 * and the profile of a run.
 */
@NullMarked
package dev.penstock.runtime.planning;

import org.jspecify.annotations.NullMarked;
