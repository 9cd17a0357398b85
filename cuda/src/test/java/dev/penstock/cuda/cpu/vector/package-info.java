/** Tests of the CPU device. */
@NullMarked
package dev.penstock.cuda.cpu.vector;

import org.jspecify.annotations.NullMarked;
