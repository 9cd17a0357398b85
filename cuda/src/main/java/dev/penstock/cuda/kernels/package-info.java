/**
 * The rules that every implementation of the op table obeys (shapes, types, indices) and the plain
 * reference implementation that anyone can read. Start with {@link
 * dev.penstock.cuda.kernels.ReferenceKernels}.
 */
@NullMarked
package dev.penstock.cuda.kernels;

import org.jspecify.annotations.NullMarked;
