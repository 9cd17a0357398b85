/** Tests of the CPU device. */
@NullMarked
package dev.penstock.cuda.cpu;

import org.jspecify.annotations.NullMarked;
