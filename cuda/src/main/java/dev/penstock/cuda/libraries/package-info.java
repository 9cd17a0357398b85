/**
 * Native libraries: finding NVIDIA's, which are used where a machine has them, and unpacking those
 * that jars carry.
 */
@NullMarked
package dev.penstock.cuda.libraries;

import org.jspecify.annotations.NullMarked;
