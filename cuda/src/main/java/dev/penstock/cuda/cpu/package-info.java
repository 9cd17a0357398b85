/**
 * The CPU device: off-heap memory with scopes, vector kernels, matrix products by oneDNN or by our
 * own code, and a small pool of threads that work on each op together.
 */
@NullMarked
package dev.penstock.cuda.cpu;

import org.jspecify.annotations.NullMarked;
