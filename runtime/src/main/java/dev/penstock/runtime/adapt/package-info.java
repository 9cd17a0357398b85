/**
 * What a run changes of its plan while it goes on, by what its steps take: looks, simulates, and
 * asks for another plan where that wins.
 */
@NullMarked
package dev.penstock.runtime.adapt;

import org.jspecify.annotations.NullMarked;
