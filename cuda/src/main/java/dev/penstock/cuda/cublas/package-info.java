/**
 * cuBLAS by {@code java.lang.foreign}, where the machine has it. Start with {@link
 * dev.penstock.cuda.cublas.Cublas}.
 */
@NullMarked
package dev.penstock.cuda.cublas;

import org.jspecify.annotations.NullMarked;
