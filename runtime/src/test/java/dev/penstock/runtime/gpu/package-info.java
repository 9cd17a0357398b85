/** The emulated GPUs that tests of runs share. */
@NullMarked
package dev.penstock.runtime.gpu;

import org.jspecify.annotations.NullMarked;
