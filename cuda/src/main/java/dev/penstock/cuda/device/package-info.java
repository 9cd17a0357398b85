/**
 * Contracts of devices: memory with scopes and limits, tensors as views of it, and the op table
 * that every device implements. Start with {@link dev.penstock.cuda.device.Device}.
 */
@NullMarked
package dev.penstock.cuda.device;

import org.jspecify.annotations.NullMarked;
