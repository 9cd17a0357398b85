/**
 * Vectors of one width and functions of them, over absolute addresses: what the kernels of the CPU
 * device are written with. Seen by {@code cuda.cpu} alone.
 */
@NullMarked
package dev.penstock.cuda.cpu.vector;

import org.jspecify.annotations.NullMarked;
