/** Tests of the GPU device, on emulated GPUs where there is no real one. */
@NullMarked
package dev.penstock.cuda.gpu;

import org.jspecify.annotations.NullMarked;
