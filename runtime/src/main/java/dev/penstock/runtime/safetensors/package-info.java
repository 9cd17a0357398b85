/**
 * Tensors in files: the safetensors format, read by mapping and written with checksums. Start with
 * {@link dev.penstock.runtime.safetensors.SafetensorsFile}.
 */
@NullMarked
package dev.penstock.runtime.safetensors;

import org.jspecify.annotations.NullMarked;
