/** Tests of the model: golden runs, equal bits, memory, and the parts by themselves. */
@NullMarked
package dev.penstock.runtime.model;

import org.jspecify.annotations.NullMarked;
