/**
 * GPUs through JCuda's driver API, the only package that sees {@code jcuda}. This release finds and
 * names them; kernels come later. Start with {@link dev.penstock.cuda.gpu.GpuProbe}.
 */
@NullMarked
package dev.penstock.cuda.gpu;

import org.jspecify.annotations.NullMarked;
