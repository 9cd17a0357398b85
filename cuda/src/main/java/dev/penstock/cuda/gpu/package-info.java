/**
 * GPUs through JCuda's driver API, the only package that sees {@code jcuda}. Start with {@link
 * dev.penstock.cuda.gpu.GpuDevice}; the kernels are in {@code src/main/cuda}.
 */
@NullMarked
package dev.penstock.cuda.gpu;

import org.jspecify.annotations.NullMarked;
